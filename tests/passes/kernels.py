"""Kernels in the authoring language, taken through the stages and run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import flyllvm.compiler as flyc
import flyllvm.expr as fx
from flyllvm.ir.builder import Builder
from flyllvm.ir.core import Kernel, Op, Value
from flyllvm.ir.verifier import verify
from flyllvm.passes import expand, to_ssa
from flyllvm.target import Target

GFX942 = Target.parse("gfx942")
WAVE = 64


def traced(fn: Callable[..., None], *specs: Any, block: int = WAVE, target: Target = GFX942) -> Kernel:
    """The kernel at stage fly."""
    return flyc.kernel(fn, known_block_size=(block, 1, 1)).trace(specs, target)


def expanded(fn: Callable[..., None], *specs: Any, block: int = WAVE) -> Kernel:
    """The kernel at stage atoms, verified."""
    kernel = traced(fn, *specs, block=block)
    verify(kernel, "fly", GFX942)
    kernel = expand(kernel, GFX942)
    verify(kernel, "atoms", GFX942)
    return kernel


def promoted(fn: Callable[..., None], *specs: Any, block: int = WAVE) -> Kernel:
    """The kernel at stage ssa, verified."""
    kernel = to_ssa(expanded(fn, *specs, block=block), GFX942)
    verify(kernel, "ssa", GFX942)
    return kernel


def ops(kernel: Kernel, name: str) -> list[Op]:
    """Operations of a name, in order."""
    return [op for op in kernel.walk() if op.name == name]


def run(fn: Callable[..., None], *arrays: np.ndarray, ssa: bool = True, block: int = WAVE, specs: Any = None) -> str:
    """Runs the kernel on arrays (changed in place) in the simulator; returns its LLVM IR."""
    given = [f"{_NAMES[a.dtype.name]}[{','.join(map(str, a.shape))}]" for a in arrays] if specs is None else specs
    kernel = flyc.kernel(fn, known_block_size=(block, 1, 1))
    art = flyc.compile(kernel, *given, arch=GFX942, ssa=ssa, stop_after="llvm", debug=False)
    art.simulate(*arrays, grid=1)
    return art.llvm_ir


_NAMES = {"float32": "f32", "float16": "f16", "int32": "i32"}


def copy_atom(dtype: Any, bits: int | None = None) -> Any:
    """A universal copy of one element, or of some bits."""
    return fx.make_copy_atom(fx.UniversalCopy(bits or dtype.width), dtype)


def b() -> Builder:
    """The builder of the kernel being traced."""
    return Builder.current()


def loop(count: int, body: Callable[[Any], None]) -> None:
    """A traced loop over 0 to ``count - 1``, whatever the control flow of the language is."""
    b().for_(0, count, 1, [], lambda index: body(fx.Int32.wrap(index)))


def element(tensor: Any, index: Any) -> Value:
    """A pointer to an element at a run-time index; the language itself refuses one into registers."""
    return b().add_offset(tensor.ptr, index.ir_value())
