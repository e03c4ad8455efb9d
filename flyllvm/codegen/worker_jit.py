"""Host code of the simulator in the worker: compiled once, kept, and run on memory that is shared with the client.

Loaded by `worker` at the first such request.  ``jit_load`` compiles a module (``key``, ``ir``, ``state_bytes``,
``opt_level``); ``jit_run`` calls its function ``run`` (``key``, ``path`` and ``size`` of the shared file, ``heap_at``,
``first``, ``count``) and answers its ``status``, or ``unknown`` where the code is not loaded here.
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
        state: Address of the register file.
    """

    __slots__ = ("_engine", "_memory", "function", "state")

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
        self._memory = mmap.mmap(-1, max(state_bytes, 4096))
        self.state = address_of(self._memory)

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
    except (OSError, ValueError) as e:
        return {"error": f"the shared memory {request['path']} cannot be mapped: {e}", "stage": "host code"}
    if request["size"] > _KEPT_BYTES:
        _shared.clear()  # unmapped when this call is over
    start = time.perf_counter()
    status = code.function(shared, shared + request["heap_at"], code.state, request["first"], request["count"])
    wall_ms = (time.perf_counter() - start) * 1e3
    del memory
    return {"status": status, "wall_ms": wall_ms}


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
