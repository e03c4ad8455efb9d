"""The process that runs LLVM; the only place that imports llvmlite.

LLVM ends its process on many errors, so it gets one of its own.  This file imports nothing of flyllvm and can run as a
script.  Frames on stdin and stdout are a 4-byte little-endian length and a ``marshal`` dictionary; what LLVM itself
prints goes to stderr, where the client reads it.

Request: ``op`` is ``compile`` (``ir``, ``triple``, ``cpu``, ``features``, ``opt_level``, ``passes``,
``strength_reduction``, ``want``, ``memory_limit_bytes``), ``run`` (``ir``, ``name``, ``args``: host code only), or one
of `worker_jit`.  Answer: the results by name, or ``error`` with LLVM's words and the ``stage``.
"""

from __future__ import annotations

import marshal
import os
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: The llvmlite and LLVM versions whose text syntax and intrinsics the package is written for.
LLVMLITE = "0.50."
LLVM = (22, 1)
_MARSHAL_VERSION = 2  # the same in every Python that can run this


class Stage:
    """Times the stages of a request, and knows the one that failed."""

    __slots__ = ("cpu_ms", "name", "start", "wall_ms")

    def __init__(self) -> None:
        self.name = ""
        self.cpu_ms: dict[str, float] = {}
        self.wall_ms: dict[str, float] = {}
        self.start = (0.0, 0.0)

    def begin(self, name: str) -> None:
        """Ends the current stage and starts the next."""
        now = (time.process_time(), time.perf_counter())
        if self.name:
            cpu, wall = now[0] - self.start[0], now[1] - self.start[1]
            self.cpu_ms[self.name] = self.cpu_ms.get(self.name, 0.0) + cpu * 1e3
            self.wall_ms[self.name] = self.wall_ms.get(self.name, 0.0) + wall * 1e3
        self.name, self.start = name, now


def load_llvm() -> tuple[Any, str | None]:
    """llvmlite's binding, initialised, and ``None``; or ``None`` and why it cannot be used."""
    try:
        import llvmlite

        if _LEAN:
            import_llvmlite()
        import llvmlite.binding as llvm
    except (ImportError, OSError) as e:
        return None, f"llvmlite cannot be imported by {sys.executable}: {e}"
    problem = _version_problem(llvmlite.__version__, tuple(llvm.llvm_version_info))
    if problem is None and not _READY:
        llvm.initialize_all_targets()
        llvm.initialize_all_asmprinters()
        _READY.append(True)
    return (llvm, None) if problem is None else (None, problem)


def _version_problem(llvmlite: str, llvm: tuple[int, ...]) -> str | None:
    if llvmlite.startswith(LLVMLITE) and llvm[:2] == LLVM:
        return None
    found = f"llvmlite {llvmlite} with LLVM {'.'.join(map(str, llvm))}"
    return f"{found} is installed; flyllvm needs llvmlite {LLVMLITE}x with LLVM {LLVM[0]}.{LLVM[1]}"


_READY: list[bool] = []
# Of the process that runs LLVM alone: llvmlite's library without its Python, see `worker_lean`.
_LEAN: list[Any] = []
_MACHINES: dict[tuple[bool, str, str, str, int], Any] = {}


def beside(name: str) -> Any:
    """A module in the folder of this file, which is no part of a package here."""
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    try:
        return __import__(name)
    finally:
        del sys.path[0]


def load_lean() -> str | None:
    """Loads llvmlite's library without its Python; returns why it cannot be used.

    Raises:
        ImportError, OSError, AttributeError: It is not there, or not as it should be.
    """
    import llvmlite

    llvm = beside("worker_lean").Lean(llvmlite.__path__[0])
    problem = _version_problem(llvmlite.__version__, llvm.llvm_version_info)
    if problem is None:
        llvm.initialize_all_targets()
        llvm.initialize_all_asmprinters()
        _READY.append(True)
        _LEAN.append(llvm)
    return problem


def binding_for(request: dict[str, Any]) -> tuple[Any, str | None]:
    """What serves a compilation, as `load_llvm`: without passes and a look at variables, the lean one where it is."""
    if _LEAN and request.get("passes", "none") == "none" and not _has_lds(request):
        return _LEAN[0], None
    return load_llvm()


def _has_lds(request: dict[str, Any]) -> bool:
    """Whether a module of others has LDS variables, which `_check_variables` looks at."""
    return bool(request.get("check")) and "addrspace(3) " in request["ir"]


def target_machine(llvm: Any, request: dict[str, Any]) -> Any:
    """The target machine of a request; made once."""
    key = (llvm in _LEAN, request["triple"], request["cpu"], request["features"], request["opt_level"])
    machine = _MACHINES.get(key)
    if machine is None:
        _, triple, cpu, features, opt = key
        machine = llvm.Target.from_triple(triple).create_target_machine(cpu, features, opt=opt)
        _MACHINES[key] = machine
    return machine


class ForeignLayout(ValueError):
    """The module is laid out for another machine."""


def _check_variables(module: Any, machine: Any) -> None:
    """Checks the LDS of a module, of which LLVM looks at the low 32 bits only."""
    total = 0
    for variable in module.global_variables:
        if str(variable.type) == "ptr addrspace(3)":
            total += machine.target_data.get_abi_size(variable.global_value_type)
            if total >= 1 << 31:
                raise ValueError(f"{total} bytes of LDS, up to @{variable.name}: no GPU has so much")


def _module(llvm: Any, request: dict[str, Any], machine: Any, stage: Stage) -> Any:
    """Parses, verifies and optimises, in a context of its own: nothing stays behind."""
    stage.begin("parse")
    module = llvm.parse_assembly(request["ir"], context=llvm.context.create_context())
    stage.begin("verify")
    layout = str(machine.target_data)
    if module.data_layout != layout:
        # LLVM would compile it all the same, with addresses and offsets of another machine.
        if module.data_layout:
            raise ForeignLayout(f"its data layout is not that of the target, {layout}, but {module.data_layout}")
        module.data_layout = layout
    module.verify()
    if _has_lds(request):
        _check_variables(module, machine)
    passes = request.get("passes", "none")
    if passes != "none":
        stage.begin("passes")
        options = llvm.create_pipeline_tuning_options(speed_level=int(passes[1:]))
        builder = llvm.create_pass_builder(machine, options)
        builder.getModulePassManager().run(module, builder)
    return module


def compile_request(request: dict[str, Any]) -> dict[str, Any]:
    """Compiles LLVM IR text; see the module's page for the fields."""
    llvm, problem = binding_for(request)
    if problem is not None:
        return {"error": problem, "stage": "llvmlite"}
    if request.get("strength_reduction", True):
        return _compile(llvm, request)
    # An option of the whole process, which may be the user's.
    llvm.set_option("flyllvm", "-disable-lsr=1")
    try:
        return _compile(llvm, request)
    finally:
        llvm.set_option("flyllvm", "-disable-lsr=0")


def _compile(llvm: Any, request: dict[str, Any]) -> dict[str, Any]:
    stage = Stage()
    out: dict[str, Any] = {}
    try:
        stage.begin("target")
        machine = target_machine(llvm, request)
        module = _module(llvm, request, machine, stage)
        want = request["want"]
        if "opt" in want:
            stage.begin("print")
            out["opt"] = str(module)
        if "obj" in want:
            stage.begin("codegen")
            out["obj"] = machine.emit_object(module)
            if "asm" in want:
                # Code generation has changed the module: assembly starts again from the text.
                module = _module(llvm, request, machine, stage)
        if "asm" in want:
            stage.begin("assembly")
            out["asm"] = machine.emit_assembly(module)
    except ForeignLayout as e:
        fix = "make the module for the target, or remove its line 'target datalayout'"
        return {"error": str(e), "stage": stage.name, "fix": fix}
    except (RuntimeError, ValueError, MemoryError) as e:
        return {"error": str(e) or type(e).__name__, "stage": stage.name}
    stage.begin("")
    return out | {"cpu_ms": stage.cpu_ms, "wall_ms": stage.wall_ms}


def run_request(request: dict[str, Any]) -> dict[str, Any]:
    """Compiles a host function and calls it once; pointer arguments are copied in and out."""
    import ctypes

    llvm, problem = load_llvm()
    if problem is not None:
        return {"error": problem, "stage": "llvmlite"}
    kinds = {"i32": ctypes.c_int32, "i64": ctypes.c_int64, "f32": ctypes.c_float, "f64": ctypes.c_double}
    stage = Stage()
    try:
        machine = llvm.Target.from_triple(request["triple"]).create_target_machine(opt=1, jit=True)
        module = _module(llvm, request, machine, stage)
        engine = llvm.create_mcjit_compiler(module, machine)
        engine.finalize_object()
        address = engine.get_function_address(request["name"])
        if not address:
            return {"error": f"the module has no function {request['name']}", "stage": "run"}
        args: list[Any] = []
        buffers = []
        for kind, value in request["args"]:
            if kind == "ptr":
                buffer = ctypes.create_string_buffer(value, len(value))
                buffers.append(buffer)
                args.append(ctypes.c_void_p(ctypes.addressof(buffer)))
            else:
                args.append(kinds[kind](value))
        prototype = ctypes.CFUNCTYPE(None, *[type(a) for a in args])
        prototype(address)(*args)
        return {"buffers": [b.raw for b in buffers]}
    except (RuntimeError, ValueError, KeyError) as e:
        return {"error": str(e), "stage": stage.name or "run"}


def jit_request(request: dict[str, Any]) -> dict[str, Any]:
    """Host code of the simulator, see `worker_jit`."""
    llvm, problem = load_llvm()
    if problem is not None:
        return {"error": problem, "stage": "llvmlite"}
    worker_jit = beside("worker_jit")
    answer: dict[str, Any] = worker_jit.load(llvm, request) if request["op"] == "jit_load" else worker_jit.run(request)
    return answer


_OPS = {"compile": compile_request, "run": run_request, "jit_load": jit_request, "jit_run": jit_request}


def limit_memory(limit_bytes: int | None) -> None:
    """Bounds the address space of this process; LLVM reports its end and aborts."""
    try:
        import resource
    except ImportError:  # not on Windows
        return
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    soft = resource.RLIM_INFINITY if limit_bytes is None else limit_bytes
    if hard != resource.RLIM_INFINITY and (soft == resource.RLIM_INFINITY or soft > hard):
        soft = hard
    resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def _read_exactly(fd: int, count: int) -> bytes | None:
    parts = []
    while count:
        part = os.read(fd, min(count, 1 << 20))
        if not part:
            return None
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


def read_frame(fd: int) -> bytes | None:
    """The next frame, ``None`` at the end of the input."""
    head = _read_exactly(fd, 4)
    return None if head is None else _read_exactly(fd, int.from_bytes(head, "little"))


def write_frame(fd: int, message: dict[str, Any]) -> None:
    """Writes one frame."""
    body = marshal.dumps(message, _MARSHAL_VERSION)
    view = memoryview(len(body).to_bytes(4, "little") + body)
    while view:
        view = view[os.write(fd, view) :]


class _Folder(str):
    """A directory with ``/``, all that llvmlite asks of a path."""

    __slots__ = ()

    def __truediv__(self, name: str) -> _Folder:
        return _Folder(os.path.join(self, name))

    def __enter__(self) -> _Folder:
        return self

    def __exit__(self, *error: object) -> None:
        return None


def import_llvmlite() -> None:
    """Imports llvmlite without ``importlib.resources``, which it uses to find the folder it is in.

    That module, with all it loads, takes a quarter of a worker's start.  Where this way does not work, what it left
    behind is taken away, and `load_llvm` goes the long one.
    """
    import importlib
    from types import ModuleType

    name = "importlib.resources"
    if name in sys.modules:
        return
    short: Any = ModuleType(name)
    short.files = lambda package: _Folder(sys.modules[package].__path__[0])
    short.as_file = lambda path: path
    importlib.resources = sys.modules[name] = short
    try:
        importlib.import_module("llvmlite.binding")
    except Exception:
        for loaded in [m for m in sys.modules if m.split(".")[0] == "llvmlite"]:
            del sys.modules[loaded]
    finally:
        # llvmlite keeps what it has; whoever asks for the module gets Python's own.
        del sys.modules[name], importlib.resources


def serve(source: int, sink: int) -> None:
    """Answers requests until the input ends."""
    import _thread
    from _queue import SimpleQueue

    frames: SimpleQueue[bytes] = SimpleQueue()

    def listen() -> None:
        # A thread of its own: when the client is gone, the process ends even in the middle of LLVM.
        while (frame := read_frame(source)) is not None:
            frames.put(frame)
        os._exit(0)

    try:
        problem = load_lean()
    except (ImportError, OSError, AttributeError):
        import_llvmlite()
        _, problem = load_llvm()
    write_frame(sink, {"hello": os.getpid()} if problem is None else {"error": problem, "stage": "llvmlite"})
    _thread.start_new_thread(listen, ())
    limit: int | None = None
    while True:
        request: dict[str, Any] = marshal.loads(frames.get())
        wanted = request.get("memory_limit_bytes")
        if wanted != limit:
            limit_memory(wanted)
            limit = wanted
        write_frame(sink, _OPS[request["op"]](request))


def main(argv: list[str]) -> int:
    """Serves on stdin and stdout; arguments are import directories."""
    if argv:
        sys.path.extend(argv)
    try:
        import _signal  # type: ignore[import-not-found]  # `signal` itself loads enum

        # Ctrl-C goes to the whole foreground group; the client decides what it means.
        _signal.signal(_signal.SIGINT, _signal.SIG_IGN)
    except (ImportError, ValueError, OSError):
        pass
    # Nothing that LLVM or a library prints may get between the frames.
    sink = os.dup(1)
    os.dup2(2, 1)
    if sys.platform == "win32":
        import msvcrt

        for fd in (0, sink):
            msvcrt.setmode(fd, os.O_BINARY)
    try:
        serve(0, sink)
    except (BrokenPipeError, KeyboardInterrupt):
        return 0
    return 0


if __name__ == "__main__":
    if sys.path and os.path.abspath(sys.path[0]) == os.path.dirname(os.path.abspath(__file__)):
        del sys.path[0]  # run as a script: our file names must not hide modules of the library
    sys.exit(main(sys.argv[1:]))
