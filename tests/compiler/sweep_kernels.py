"""Kernels of the tests of sweeps; workers of other processes import this module."""

import flyllvm.compiler as flyc
import flyllvm.expr as fx


@flyc.kernel(known_block_size=(128, 1, 1))
def add_one(x: fx.Tensor, repeat: int):
    """x += 1 after ``repeat`` barriers: more barriers, more instructions."""
    i = fx.thread_idx.x
    if repeat < 0:
        raise ValueError("a configuration that cannot be traced")
    for _ in fx.range_constexpr(repeat):
        fx.barrier()
    x[i] = x[i] + 1
