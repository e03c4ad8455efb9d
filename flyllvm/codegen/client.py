"""Compiling LLVM IR text in the worker."""

from __future__ import annotations

import os
from _queue import SimpleQueue
from _thread import allocate_lock  # `threading` loads functools and collections

from ..errors import CodegenError
from .backend import backend_for
from .levers import choose_passes, reduces_strength
from .options import CODE_OBJECT_VERSIONS, PASSES
from .process import WorkerDied, WorkerProcess, default_python

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from ..target import Target

#: Seconds that one compilation may take; a kernel that needs more is far from what a GPU can hold.
DEFAULT_TIMEOUT = 600.0
#: Bytes of address space that the worker may have.
DEFAULT_MEMORY_BYTES = 16 << 30
_VERSION_FLAG = "amdhsa_code_object_version"
# A metadata number that no module written by hand or by a compiler reaches.
_OWN_NODE = 987654321
_OWN_FLAG = f"\n!llvm.module.flags = !{{!{_OWN_NODE}}}\n"
_WANT = ("obj", "asm", "opt")


class CompileResult:
    """What LLVM made of a module.

    Attributes:
        object: Relocatable object file, if it was wanted.
        assembly: Assembly text, if it was wanted.
        optimised_ir: LLVM IR after LLVM's passes, if it was wanted.
        timings: CPU milliseconds by stage: parse, verify, passes, codegen, assembly.
        messages: What LLVM printed: warnings.
    """

    __slots__ = ("assembly", "messages", "object", "optimised_ir", "timings")

    def __init__(
        self,
        object: bytes = b"",
        assembly: str = "",
        optimised_ir: str = "",
        timings: dict[str, float] | None = None,
        messages: str = "",
    ) -> None:
        self.object = object
        self.assembly = assembly
        self.optimised_ir = optimised_ir
        self.timings = timings or {}
        self.messages = messages


class WorkerPool:
    """Warm workers, at most ``size`` at once; a call waits for a free one.

    Args:
        size: Worker processes.
        python: Python that runs them; by default ``FLYLLVM_WORKER_PYTHON`` or the running one.
    """

    def __init__(self, size: int = 1, python: str | None = None) -> None:
        if size < 1:
            raise CodegenError(f"a pool of {size} workers", fix="use at least one")
        self.size = size
        self.python = python
        self._lock = allocate_lock()
        self._idle: list[WorkerProcess] = []
        self._busy = 0
        # One word for every worker that came free while somebody waited.
        self._free: SimpleQueue[None] = SimpleQueue()
        self._waiting = 0
        self._registered = False

    def start(self) -> None:
        """Starts one worker in the background, so that LLVM is loaded when the first call comes."""
        with self._lock:
            if not self._idle and not self._busy:
                self._idle.append(self._new())

    def call(self, request: dict[str, Any], timeout: float | None) -> tuple[dict[str, Any], str]:
        """The answer to a request, and what LLVM printed.

        Raises:
            WorkerDied: The worker ended; the next call gets a new one.
        """
        worker = self._take()
        try:
            answer = worker.call(request, timeout)
            return answer, worker.words()
        finally:
            self._give(worker)

    def close(self) -> None:
        """Ends the idle workers."""
        with self._lock:
            idle, self._idle = self._idle, []
        for worker in idle:
            worker.kill()
            worker.close()

    def _new(self) -> WorkerProcess:
        if not self._registered:
            import atexit

            atexit.register(self.close)
            self._registered = True
        return WorkerProcess(self.python or default_python())

    def _take(self) -> WorkerProcess:
        while True:
            with self._lock:
                # A forked child leaves its parent's workers alone.
                self._idle = [w for w in self._idle if w.parent == os.getpid()]
                if self._idle or self._busy < self.size:
                    worker = self._idle.pop() if self._idle else self._new()
                    self._busy += 1
                    return worker
                self._waiting += 1
            try:
                self._free.get()
            finally:
                with self._lock:
                    self._waiting -= 1

    def _give(self, worker: WorkerProcess) -> None:
        with self._lock:
            self._busy -= 1
            if worker.dead:
                worker.close()
            else:
                self._idle.append(worker)
            if self._waiting:
                self._free.put(None)


_DEFAULT: list[WorkerPool] = []
_DEFAULT_LOCK = allocate_lock()


def default_pool() -> WorkerPool:
    """The pool that ``compile_llvm`` uses when none is given: one worker."""
    with _DEFAULT_LOCK:
        if not _DEFAULT:
            _DEFAULT.append(WorkerPool())
        return _DEFAULT[0]


def compile_llvm(
    ir_text: str,
    target: Target,
    *,
    opt_level: int = 1,
    passes: str = "none",
    want: Sequence[str] = ("obj",),
    timeout: float | None = DEFAULT_TIMEOUT,
    memory_limit_bytes: int | None = DEFAULT_MEMORY_BYTES,
    cov: int = 500,
    check: bool = True,
    pool: WorkerPool | None = None,
    in_process: bool = False,
) -> CompileResult:
    """Compiles LLVM IR text to an object file, assembly, optimised IR.

    Args:
        ir_text: One module.
        target: What to compile for.
        opt_level: Code generation level, 0 to 3.
        passes: ``none``, ``O1``, ``O2`` or ``O3``; ``auto`` decides by the text, see `levers`.
        want: Any of ``obj``, ``asm``, ``opt``.
        timeout: Seconds, or ``None`` for no limit.
        memory_limit_bytes: Address space of the worker, or ``None`` for no limit.
        cov: Code object version times 100, for a module that does not name its own.
        check: Whether to check intrinsics and the triple of the text first; text of ``emit_module`` needs it not.
        pool: Workers to use instead of the process-wide one.
        in_process: Runs LLVM in this process, faster by a pipe's round trip; an error of LLVM then ends this process.

    Raises:
        CodegenError: LLVM refused the module, or died on it; the message carries its words.
        TargetError: The target lacks an intrinsic of the text.
    """
    passes, _ = choose_passes(ir_text, passes)
    _check_arguments(opt_level, passes, cov, want)
    _check_characters(ir_text)
    if check:
        from .foreign import check_llvm_text

        check_llvm_text(ir_text, target)
    backend = backend_for(target)
    if backend.name == "amdgpu" and _VERSION_FLAG not in ir_text:
        # Without the flag LLVM takes version 6, which older drivers refuse; named metadata adds up.
        ir_text += f'{_OWN_FLAG}!{_OWN_NODE} = !{{i32 1, !"{_VERSION_FLAG}", i32 {cov}}}\n'
    request: dict[str, Any] = {
        "op": "compile",
        "ir": ir_text,
        "triple": backend.triple,
        "cpu": target.processor if backend.name == "amdgpu" else "",
        "features": target.llvm_features,
        "opt_level": opt_level,
        "passes": passes,
        "strength_reduction": reduces_strength(ir_text),
        "want": list(want),
        "memory_limit_bytes": memory_limit_bytes,
        "check": check,
    }
    answer, words = _ask(request, timeout, pool, in_process)
    if check and "is not a recognized feature" in words:
        raise CodegenError(
            f"LLVM compiled without features that it does not know: {words}",
            fix='correct the "target-features" of the module, or remove them: the target names its own',
        )
    return CompileResult(
        answer.get("obj", b""), answer.get("asm", ""), answer.get("opt", ""), answer.get("cpu_ms"), words
    )


def _check_characters(ir_text: str) -> None:
    if "\0" in ir_text:
        # llvmlite hands LLVM a C string: what follows would be left out in silence.
        line = ir_text.count("\n", 0, ir_text.index("\0")) + 1
        raise CodegenError(f"line {line} of the LLVM IR has a NUL character", fix="pass LLVM IR as text")
    if not ir_text.isascii():
        try:
            ir_text.encode()
        except UnicodeEncodeError as e:
            line = ir_text.count("\n", 0, e.start) + 1
            raise CodegenError(
                f"line {line} of the LLVM IR has a character that is none: {e.object[e.start : e.end]!r}",
                fix="pass LLVM IR as text, decoded from UTF-8",
            ) from None


def _check_arguments(opt_level: int, passes: str, cov: int, want: Sequence[str]) -> None:
    for name, value, legal in (
        ("opt_level", opt_level, (0, 1, 2, 3)),
        ("passes", passes, PASSES),
        ("cov", cov, CODE_OBJECT_VERSIONS),
    ):
        if value not in legal:
            raise CodegenError(f"{name} = {value!r}", fix=f"use one of: {', '.join(map(str, legal))}")
    unknown = [w for w in want if w not in _WANT]
    if unknown or not want:
        raise CodegenError(f"want = {list(want)!r}", fix=f"ask for some of: {', '.join(_WANT)}")


def run_host(ir_text: str, name: str, args: Sequence[tuple[str, Any]], timeout: float = 60.0) -> list[bytes]:
    """Runs a function of a module for the host CPU once, in the worker.

    Args:
        ir_text: A module for the host (``x86.host_target``).
        name: The function.
        args: ``("ptr", bytes)``, ``("i32", n)``, ``("i64", n)``, ``("f32", x)`` or ``("f64", x)`` per parameter.
        timeout: Seconds.

    Returns:
        The contents of the pointer arguments afterwards.

    Raises:
        CodegenError: LLVM refused the module, or the code ended the worker.
    """
    from .x86 import X86

    request = {"op": "run", "ir": ir_text, "name": name, "args": [tuple(a) for a in args], "triple": X86.triple}
    answer, _ = _ask(request, timeout, None, False)
    return list(answer["buffers"])


def _ask(
    request: dict[str, Any], timeout: float | None, pool: WorkerPool | None, in_process: bool
) -> tuple[dict[str, Any], str]:
    if in_process:
        from .worker import compile_request

        answer, words = compile_request(request), ""
    else:
        try:
            answer, words = (pool or default_pool()).call(request, timeout)
        except WorkerDied as e:
            where = save_ir(request["ir"])
            said = f":\n{e.words}" if e.words else ""
            raise CodegenError(
                f"LLVM {e.how}, compiling for {request.get('cpu') or 'the host'}{said}",
                fix=f"{_advice(e)}; the module is saved as {where}, and a new worker takes the next one",
            ) from None
    if "error" in answer:
        raise _refused(answer, words, request["ir"])
    return answer, words


def _advice(death: WorkerDied) -> str:
    from .llvm_words import MORE_TIME, advice

    if death.late:
        return MORE_TIME
    return advice(death.words, "avoid what LLVM names")


def _refused(answer: dict[str, Any], words: str, ir_text: str) -> CodegenError:
    if answer["stage"] == "llvmlite":
        return CodegenError(
            answer["error"], fix="run: python -m pip install 'llvmlite>=0.50,<0.51' (or set FLYLLVM_WORKER_PYTHON)"
        )
    from .llvm_words import MORE_MEMORY, parse_error

    text = parse_error(answer["error"].strip(), ir_text.partition(_OWN_FLAG)[0]) + (f"\n{words}" if words else "")
    fix = answer.get("fix") or (MORE_MEMORY if answer["error"] == "MemoryError" else "correct the LLVM IR")
    if os.environ.get("FLYLLVM_DUMP_DIR"):
        fix += f"; it is saved as {save_ir(ir_text)}"
    return CodegenError(f"LLVM refuses the module ({answer['stage']}): {text}", fix=fix)


def save_ir(ir_text: str) -> str:
    """Writes a module that LLVM died on into ``FLYLLVM_DUMP_DIR`` or the temporary directory; returns its path."""
    import hashlib
    import tempfile

    directory = os.environ.get("FLYLLVM_DUMP_DIR") or tempfile.gettempdir()
    name = f"flyllvm-{hashlib.sha256(ir_text.encode()).hexdigest()[:12]}.ll"
    path = os.path.join(directory, name)
    try:
        os.makedirs(directory, exist_ok=True)
        with open(path, "w", encoding="utf-8") as f:
            f.write(ir_text)
    except OSError as e:
        return f"nothing ({path}: {e.strerror}; set FLYLLVM_DUMP_DIR to a directory that can be written)"
    return path


__all__ = ["CompileResult", "WorkerPool", "compile_llvm", "default_pool", "run_host"]
