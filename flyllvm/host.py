"""Host code for the simulator's second engine: the one door from there to the compile worker.

The simulator must not know how flyllvm makes code, so that its meaning of an instruction is derived a second time.
What it needs from `codegen` is only a process in which LLVM may fail.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    Jobs = Sequence[tuple[int, int, list[tuple[int, int]]]]


def load(key: str, ir_text: str, state_bytes: int, timeout: float) -> float:
    """Compiles a module of host code in the worker; returns the milliseconds it took.

    Raises:
        CodegenError: LLVM refused it, ended its process, or took too long.
    """
    from .codegen import host_code

    return host_code.load(key, ir_text, state_bytes, timeout)


def run(key: str, path: str, size: int, jobs: Jobs, timeout: float) -> list[tuple[int, int]] | None:
    """Runs workgroups on a shared file, every job on a thread of its own.

    A job is the place in the file of its control block and of its global memory, and the ranges of workgroups, first
    and count, that it runs one after the other.  The result is, for each job, the status of the code, and the first
    workgroup of the range where that is not zero; ``None`` where the code is not loaded (any more).

    Raises:
        CodegenError: The code ended the worker or took too long.
    """
    from .codegen import host_code

    return host_code.run(key, path, size, jobs, timeout)
