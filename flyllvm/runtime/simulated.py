"""Launches in the simulator."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..target import Target


def simulate_launch(
    llvm_ir: str,
    kernel: str,
    grid: tuple[int, int, int],
    block: tuple[int, int, int],
    args: Sequence[Any],
    target: Target,
    dynamic_lds_bytes: int = 0,
    **options: Any,
) -> Any:
    """Runs a kernel's LLVM IR; arrays are changed in place.  Returns the simulator's report.

    Raises:
        SimError: The kernel has a fault.
    """
    from ..sim import simulate

    return simulate(
        llvm_ir,
        kernel=kernel,
        grid=grid,
        block=block,
        args=list(args),
        target=str(target),
        wave_size=target.wave_size,
        dynamic_lds_bytes=dynamic_lds_bytes,
        **options,
    )


def host_bytes(address: int, count: int, writable: bool = True) -> Any:
    """Host memory as an array of bytes that a simulated kernel reads and writes in place.

    Args:
        address: Address of the first byte; the memory must outlive the array.
        count: Number of bytes.
        writable: False where a kernel must not write it.
    """
    import ctypes

    import numpy as np

    if count == 0:
        return np.empty(0, np.uint8)
    memory: Any = (ctypes.c_uint8 * count).from_address(address)
    made = np.frombuffer(memory, np.uint8)
    made.flags.writeable = writable
    return made
