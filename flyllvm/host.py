"""Host code for the simulator's second engine: the one door from there to the compile worker.

The simulator must not know how flyllvm makes code, so that its meaning of an instruction is derived a second time.
What it needs from `codegen` is only a process in which LLVM may fail.
"""

from __future__ import annotations


def load(key: str, ir_text: str, state_bytes: int, timeout: float) -> float:
    """Compiles a module of host code in the worker; returns the milliseconds it took.

    Raises:
        CodegenError: LLVM refused it, ended its process, or took too long.
    """
    from .codegen import host_code

    return host_code.load(key, ir_text, state_bytes, timeout)


def run(key: str, path: str, size: int, heap_at: int, first: int, count: int, timeout: float) -> int | None:
    """Runs workgroups ``first`` to ``first + count`` on a shared file; returns the status of the code.

    ``None`` says that the code is not loaded (any more).

    Raises:
        CodegenError: The code ended the worker or took too long.
    """
    from .codegen import host_code

    return host_code.run(key, path, size, heap_at, first, count, timeout)
