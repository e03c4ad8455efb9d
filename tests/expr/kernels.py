"""Small kernels for tests of the language: one function applied to every element, run in the simulator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import flyllvm.compiler as flyc
import flyllvm.expr as fx
from flyllvm.ir.builder import Builder
from flyllvm.ir.core import Kernel
from flyllvm.target import Target

WAVE = 64


class Tracing:
    """``with Tracing():`` makes a kernel the current one, for tests that only trace."""

    def __init__(self, arch: str = "gfx942", block: tuple[int, int, int] | None = None) -> None:
        self.kernel = Kernel("k")
        if block is not None:
            self.kernel.attrs["known_block_size"] = block
        self.builder = Builder(self.kernel, Target.parse(arch))

    def __enter__(self) -> Tracing:
        self.builder.__enter__()
        return self

    def __exit__(self, *exc: object) -> None:
        self.builder.__exit__(*exc)

    def arg(self, dtype: type[fx.Numeric], name: str = "") -> Any:
        """A run-time number."""
        return dtype.wrap(self.kernel.add_arg(dtype.ir, name))

    def ops(self) -> list[str]:
        """Names of the operations so far."""
        return [op.name for op in self.kernel.walk()]


def elementwise(
    fn: Callable[..., Any], inputs: Sequence[np.ndarray], out: type[fx.Numeric], np_out: Any, *, vector: int = 1,
    types: Sequence[type[fx.Numeric]] | None = None, arch: str = "gfx942", **options: Any,
) -> np.ndarray:  # fmt: skip
    """``fn`` of the elements of flat arrays, through LLVM IR and the simulator.

    Args:
        fn: Takes a number (or with ``vector`` a vector) per input, gives one of type ``out``.
        inputs: Arrays of one size, a multiple of 64 times ``vector``.
        out: Type of the result.
        np_out: The same in NumPy.
        vector: Elements a thread computes at once.
        types: Element types of the inputs, where the NumPy type does not say.
        arch: Target.
        options: Of ``flyc.compile``.
    """
    size = inputs[0].size
    per_block = WAVE * vector
    names = [f"x{i}" for i in range(len(inputs))]
    space: dict[str, Any] = {"fx": fx, "fn": fn, "vector": vector, "per_block": per_block}
    loads = ", ".join(f"part({n}, start)" for n in names)
    # A kernel has one parameter per array, so its source is written for the number of them.
    source = f"""
def part(x, start):
    return x.iter[start] if vector == 1 else (x.iter + start).load(count=vector)

def kernel({", ".join([*names, "y"])}):
    start = fx.block_idx.x * per_block + fx.thread_idx.x * vector
    (y.iter + start).store(fn({loads}))
"""
    exec(source, space)
    kernel = flyc.kernel(space["kernel"], known_block_size=(WAVE, 1, 1))
    specs = [
        fx.TensorSpec(t, (size,), align=16) if t else flyc_spec(a, size)
        for a, t in zip(inputs, types or [None] * len(inputs), strict=True)
    ]
    artifact = flyc.compile(
        kernel, *specs, fx.TensorSpec(out, (size,), align=16), arch=arch, stop_after="llvm", **options
    )
    result = np.zeros(size, np_out)
    artifact.simulate(*inputs, result, grid=(size // per_block, 1, 1))
    return result


_TYPES = {
    "int8": fx.Int8, "int16": fx.Int16, "int32": fx.Int32, "int64": fx.Int64, "uint8": fx.Uint8, "uint16": fx.Uint16,
    "uint32": fx.Uint32, "uint64": fx.Uint64, "float16": fx.Float16, "float32": fx.Float32, "float64": fx.Float64,
    "bfloat16": fx.BFloat16,
}  # fmt: skip


def flyc_spec(a: np.ndarray, size: int) -> fx.TensorSpec:
    """The specification of a flat array."""
    return fx.TensorSpec(_TYPES[a.dtype.name], (size,), align=16)
