"""A kernel with every kind of argument that a compiled kernel has: tensors with run-time extents, a float."""

from __future__ import annotations

import flyllvm.compiler as flyc
import flyllvm.expr as fx


@flyc.kernel(known_block_size=(64, 1, 1))
def axpy(X: fx.Tensor, Y: fx.Tensor, a: fx.Float32) -> None:
    """Y = a * X + Y, 64 elements in a workgroup."""
    i = fx.block_idx.x * 64 + fx.thread_idx.x
    Y[i] = a * X[i] + Y[i]
