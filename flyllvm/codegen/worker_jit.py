"""Host code of the simulator in the worker: compiled once, kept, and run on memory that is shared with the client.

Loaded by `worker` at the first such request.  ``jit_load`` compiles a module (``key``, ``ir``, ``state_bytes``,
``opt_level``); ``jit_run`` calls its function ``run`` (``key``, ``path`` and ``size`` of the shared file, ``jobs``) and
answers the ``ends`` of the jobs, or ``unknown`` where the code is not loaded here.  A job runs on a thread of its own:
it has the places in the file of its control block and its global memory, and ranges of workgroups.  Its end is the
status of the last call, and the first workgroup of that range.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# Kernels whose code is kept; each has a register file of some hundred kilobytes.
_MOST_CODES = 16
# A larger shared file is not kept mapped.
_KEPT_BYTES = 1 << 26
_codes: dict[str, Code] = {}
_shared: list[tuple[tuple[str, int], Any, int]] = []


class Code:
    """A compiled module.

    Attributes:
        function: Its function ``run``.
    """

    __slots__ = ("_engine", "_memory", "_state_bytes", "function")

    def __init__(self, llvm: Any, ir: str, state_bytes: int, opt_level: int) -> None:
        module = llvm.parse_assembly(ir, context=llvm.context.create_context())
        module.verify()
        target = llvm.Target.from_triple(llvm.get_process_triple())
        features = llvm.get_host_cpu_features().flatten()
        machine = target.create_target_machine(llvm.get_host_cpu_name(), features, opt=opt_level, jit=True)
        self._engine = llvm.create_mcjit_compiler(module, machine)
        # The loops over lanes are as they should be; reducing their strength takes a third of the time.
        llvm.set_option("flyllvm", "-disable-lsr=1")
        try:
            self._engine.finalize_object()
        finally:
            llvm.set_option("flyllvm", "-disable-lsr=0")
        prototype = ctypes.CFUNCTYPE(
            ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64
        )
        self.function = prototype(self._engine.get_function_address("run"))
        self._state_bytes = max(state_bytes, 4096)
        self._memory = [mmap.mmap(-1, self._state_bytes)]

    def state(self, number: int) -> int:
        """Address of the register file of a job."""
        while len(self._memory) <= number:
            self._memory.append(mmap.mmap(-1, self._state_bytes))
        return address_of(self._memory[number])

    def run(self, state: int, control: int, memory: int, ranges: list[list[int]]) -> tuple[int, int]:
        """Runs ranges of workgroups until one does not end well."""
        for first, count in ranges:
            status = self.function(control, memory, state, first, count)
            if status:
                return status, first
        return 0, 0

    def close(self) -> None:
        """Frees the code."""
        self._engine.close()


def address_of(memory: Any) -> int:
    """Where a mapping is."""
    return ctypes.addressof(ctypes.c_char.from_buffer(memory))


def load(llvm: Any, request: dict[str, Any]) -> dict[str, Any]:
    """Compiles a module and keeps it."""
    start = time.perf_counter()
    try:
        code = Code(llvm, request["ir"], request["state_bytes"], request["opt_level"])
    except (RuntimeError, ValueError, OSError, MemoryError) as e:
        return {"error": str(e) or type(e).__name__, "stage": "host code"}
    while len(_codes) >= _MOST_CODES:
        _codes.pop(next(iter(_codes))).close()
    _codes[request["key"]] = code
    return {"wall_ms": (time.perf_counter() - start) * 1e3}


def run(request: dict[str, Any]) -> dict[str, Any]:
    """Runs a range of workgroups."""
    code = _codes.pop(request["key"], None)
    if code is None:
        return {"unknown": True}
    _codes[request["key"]] = code  # the one used last is dropped last
    try:
        memory, shared = _map(request["path"], request["size"])
        states = [code.state(number) for number in range(len(request["jobs"]))]
    except (OSError, ValueError) as e:
        return {"error": f"the shared memory {request['path']} cannot be mapped: {e}", "stage": "host code"}
    if request["size"] > _KEPT_BYTES:
        _shared.clear()  # unmapped when this call is over
    start = time.perf_counter()
    ends = _side_by_side(code, shared, states, request["jobs"])
    wall_ms = (time.perf_counter() - start) * 1e3
    del memory
    return {"ends": ends, "wall_ms": wall_ms}


def _side_by_side(code: Code, shared: int, states: list[int], jobs: list[Any]) -> list[tuple[int, int]]:
    """Runs every job on a thread; calls of host code do not hold the interpreter's lock."""
    ends = [(0, 0)] * len(jobs)

    def run_job(number: int) -> None:
        control_at, heap_at, ranges = jobs[number]
        ends[number] = code.run(states[number], shared + control_at, shared + heap_at, ranges)

    running, here = [], [0]
    for number in range(1, len(jobs)):
        import threading  # only where a user asks for more than one

        thread = threading.Thread(target=run_job, args=(number,))
        try:
            thread.start()
            running.append(thread)
        except RuntimeError:  # the system gives no more of them
            here.append(number)
    for number in here:
        run_job(number)
    for thread in running:
        thread.join()
    return ends


def _map(path: str, size: int) -> tuple[Any, int]:
    """A file's content and its address; the last file stays mapped."""
    if _shared and _shared[0][0] == (path, size):
        return _shared[0][1:]
    _shared.clear()
    fd = os.open(path, os.O_RDWR)
    try:
        memory = mmap.mmap(fd, size)
    finally:
        os.close(fd)
    _shared.append(((path, size), memory, address_of(memory)))
    return _shared[0][1:]
