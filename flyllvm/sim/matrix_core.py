"""The parts every matrix instruction is made of: fragments, the product, and the description of an intrinsic.

A *fragment* says where each element of one matrix sits in the registers of a wave, as a lane and a value number.
Values are numbered in the packed order of a lane's registers, low bits first.  The families (`matrix_mfma`,
`matrix_wmma`, ...) write their fragments as lane formulas; this file turns them into gather indices once, so that one
instruction over all waves is two gathers, one batched matmul and one gather back.

Accumulation: products are exact in float64, the sum over K and the accumulator is taken in float64, and the result is
rounded once to the accumulator's type (nearest, ties to even).  For integer-valued inputs this is exact.  Hardware
rounds more often: gfx942 truncates aligned groups of 4 to 16 products to 24 fraction bits and rounds after each
group, gfx90a rounds every addition, f32 and f64 rows are chains of fused multiply-adds.  The single rounding here is
the centre of those results and depends on neither the order of K nor the host's BLAS, beyond float64's own rounding.
Rows of f64, which show that, are summed in the order of K.  A bf16 product beyond the float32 range is infinite on
hardware and may cancel here.

Denormals are kept, except on gfx90a where the f16 and bf16 rows flush inputs, accumulator and result to zero.

Source: CDNA3 ISA manual, matrix arithmetic instructions; MMA-Sim (arXiv 2511.10909) for the rounding of real chips;
AMD MIOpen documentation, "MI200 MFMA behavior specifics", for the flushing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..errors import SimError
from ..target import Target
from .matrix_element import F64, F64E, AnyArray
from .matrix_fragment import Fetch, Index, Store


class Scratch:
    """Work arrays of one call, kept between calls: fresh pages for each call would cost more than the product."""

    __slots__ = ("a", "b", "product", "spread", "waves")

    def __init__(self, waves: int, a: Fetch, b: Fetch, c: Store) -> None:
        self.waves = waves
        self.a: F64 = np.empty((waves, *a.shape))
        self.b: F64 = np.empty((waves, *b.shape))
        self.product: F64 = np.empty((*self.a.shape[:-1], b.shape[-1]))
        self.spread: F64 = np.empty((waves, c.used))


class Product:
    """A prepared dense instruction ``D = A * B + C`` over all waves.

    Shape: A is fetched as ``(blocks, M, K)``, B as ``(blocks, K, N)``, both without ``blocks`` where that is one.  A
    call takes the register arrays ``(waves, lanes, values)`` (or ``(waves, lanes)`` for scalars) and returns D with
    the shape and type of C.  Calls from several threads are safe.
    """

    __slots__ = ("_pool", "a", "b", "c", "negate")

    def __init__(self, a: Fetch, b: Fetch, c: Store, *, negate: bool = False) -> None:
        self.a = a
        self.b = b
        self.c = c
        self.negate = negate
        self._pool: list[Scratch] = []

    def __call__(self, *registers: Any) -> AnyArray:
        a, b, c = registers
        self.a.check("A", a)
        self.b.check("B", b)
        self.c.check(c)
        with np.errstate(all="ignore"):
            scratch = self.take_scratch(a.shape[0])
            out = self.finish(scratch, self.a(a, scratch.a), self.b(b, scratch.b), c)
        self.give_scratch(scratch)
        return out

    def take_scratch(self, waves: int) -> Scratch:
        """Work arrays for a number of waves; give them back with `give_scratch`."""
        scratch = self._pool.pop() if self._pool else None
        if scratch is None or scratch.waves != waves:
            scratch = Scratch(waves, self.a, self.b, self.c)
        return scratch

    def give_scratch(self, scratch: Scratch) -> None:
        """Returns work arrays for the next call."""
        self._pool.append(scratch)

    def finish(self, scratch: Scratch, a: F64, b: F64, c: AnyArray) -> AnyArray:
        """Multiplies fetched matrices, adds the accumulator's registers and rounds."""
        if self.a.element is F64E:
            product = scratch.product
            product.fill(0.0)
            for k in range(a.shape[-1]):
                product += a[..., k : k + 1] * b[..., k : k + 1, :]
        else:
            product = np.matmul(a, b, out=scratch.product)
        if self.negate:
            np.negative(product, out=product)
        return self.c(product, c, scratch.spread)


def grid(*sizes: int) -> list[Index]:
    """Coordinate arrays of a box, ready for lane formulas.  Shape: each ``sizes``."""
    return list(np.indices(sizes))


def chunked(row: Index, k: Index, chunk: int, rows: int, groups: int, count: int) -> Index:
    """Flat position of an input element where K goes to the lane groups in turn, ``chunk`` values at a time.

    Lane ``row + rows * (k / chunk % groups)``, value ``chunk * (k / (chunk * groups)) + k % chunk``.
    """
    lane = row + rows * (k // chunk % groups)
    return lane * count + chunk * (k // (chunk * groups)) + k % chunk


def inverse(index: Index, size: int) -> Index:
    """The element at each flat register position, or -1 where there is none."""
    held = np.full(size, -1, np.intp)
    held[index.reshape(-1)] = np.arange(index.size)
    return held


Prepared = Callable[..., AnyArray]
Build = Callable[[tuple[int, ...], int, Target], Prepared]


class Intrinsic:
    """What the simulator knows about one intrinsic name.

    Attributes:
        name: Without ``llvm.amdgcn.`` and without type suffixes.
        targets: Processors that have the instruction.
        waves: Wave sizes it runs in.
        immediates: Positions of the arguments that must be constants, with their names, in LLVM's order.
        flops: Multiplications and additions of one wave; zero where nothing is multiplied.
        build: ``build(immediates, wave_size, target)`` makes the function of the other arguments.
    """

    __slots__ = ("build", "flops", "immediates", "name", "targets", "waves")

    def __init__(
        self,
        name: str,
        targets: tuple[str, ...],
        waves: tuple[int, ...],
        immediates: dict[int, str],
        flops: int,
        build: Build,
    ) -> None:
        self.name = name
        self.targets = targets
        self.waves = waves
        self.immediates = immediates
        self.flops = flops
        self.build = build

    def prepare(self, immediates: tuple[int, ...], wave_size: int, target: Target) -> Prepared:
        """The function of the non-constant arguments.

        Raises:
            SimError: Not on this target, not in this wave size, or a constant without a meaning.
        """
        if target.processor not in self.targets:
            raise SimError(f"{target.processor} has no {self.name}", fix=f"targets with it: {', '.join(self.targets)}")
        if wave_size not in self.waves:
            legal = " or ".join(map(str, self.waves))
            raise SimError(f"{self.name} does not run in waves of {wave_size}", fix=f"simulate with wave_size={legal}")
        if len(immediates) != len(self.immediates):
            names = ", ".join(self.immediates.values()) or "none"
            raise SimError(f"{self.name}: {len(immediates)} constant arguments", fix=f"pass {names}")
        return self.build(immediates, wave_size, target)

    def split(self, args: Sequence[Any]) -> tuple[tuple[int, ...], list[Any]]:
        """Splits LLVM's arguments into the constants and the register arrays, each in order."""
        constants: list[int] = []
        arrays: list[Any] = []
        for position, arg in enumerate(args):
            if position not in self.immediates:
                arrays.append(arg)  # an int stays one: LLVM gives constant scales a meaning of their own
            elif isinstance(arg, int):
                constants.append(int(arg))
            else:
                what = self.immediates[position]
                raise SimError(f"{self.name}: argument {position} ({what}) is not a constant", fix="pass a constant")
        return tuple(constants), arrays


def check_flag(name: str, what: str, value: int, limit: int = 1) -> None:
    """Raises `SimError` unless a constant argument is in ``0..limit``."""
    if not 0 <= value <= limit:
        raise SimError(f"{name}: {what} is {value}", fix=f"{what} is 0 to {limit}")
