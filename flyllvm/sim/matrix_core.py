"""The parts every matrix instruction is made of: element formats, fragments, and the product itself.

A *fragment* says where each element of one matrix sits in the registers of a wave, as a lane and a value number.
Values are numbered in the packed order of a lane's registers, low bits first.  The families (`matrix_mfma`,
`matrix_wmma`, ...) write their fragments as lane formulas; this file turns them into gather indices once, so that one
instruction over all waves is two gathers, one batched matmul and one gather back.

Accumulation: products are exact in float64, the sum over K and the accumulator is taken in float64, and the result is
rounded once to the accumulator's type (nearest, ties to even).  For integer-valued inputs this is exact.  Hardware
rounds more often: gfx942 truncates aligned groups of 4 to 16 products to 24 fraction bits and rounds after each
group, gfx90a rounds every addition, f32 and f64 rows are chains of fused multiply-adds.  The single rounding here is
the centre of those results and depends on neither the order of K nor the host's BLAS (beyond float64's own rounding,
which f64 rows do show).  A bf16 product beyond the float32 range is infinite on hardware and may cancel here.

Denormals are kept, except on gfx90a where the f16 and bf16 rows flush inputs, accumulator and result to zero.

Source: CDNA3 ISA manual, matrix arithmetic instructions; MMA-Sim (arXiv 2511.10909) for the rounding of real chips;
AMD MIOpen documentation, "MI200 MFMA behavior specifics", for the flushing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import SimError
from . import numerics

AnyArray = NDArray[Any]
F64 = NDArray[np.float64]
Index = NDArray[np.intp]


class Element:
    """One number format as it is packed in registers.

    Attributes:
        name: Short name: ``f16``, ``bf16``, ``i8``, ``fp8``, ...
        bits: Width of an element in bits.
        dtype: NumPy type the register bytes are viewed as; ``uint8`` for formats narrower than a byte.
        is_float: Whether the LLVM argument has this very float type (otherwise it is an integer carrier).
        widen: ``widen(picked, out)`` writes picked elements (of ``dtype``, or codes of narrow formats) as float64.
        min_normal: Smallest normal magnitude, for the rows that flush denormals.
    """

    __slots__ = ("bits", "dtype", "is_float", "min_normal", "name", "widen")

    def __init__(
        self,
        name: str,
        bits: int,
        dtype: Any,
        widen: Callable[[AnyArray, F64], Any],
        *,
        is_float: bool = False,
        min_normal: float = 0.0,
    ) -> None:
        self.name = name
        self.bits = bits
        self.dtype: np.dtype[Any] = np.dtype(dtype)
        self.widen = widen
        self.is_float = is_float
        self.min_normal = min_normal


def _cast(picked: AnyArray, out: F64) -> None:
    out[...] = picked


def _from_bf16(picked: AnyArray, out: F64) -> None:
    out[...] = numerics.decode_bf16(picked)


def _from_xf32(picked: AnyArray, out: F64) -> None:
    out[...] = numerics.truncate_to_xf32(picked)


def _from_table(table: F64) -> Callable[[AnyArray, F64], Any]:
    def look_up(picked: AnyArray, out: F64) -> None:
        table.take(picked, out=out, mode="clip")  # codes are in range; "raise" would go through a copy

    return look_up


def _table_element(fmt: numerics.SmallFloat, name: str) -> Element:
    return Element(name, fmt.bits, np.uint8, _from_table(fmt.table64))


_NIBBLES = np.arange(16, dtype=np.float64)

F16 = Element("f16", 16, np.float16, _cast, is_float=True, min_normal=2.0**-14)
BF16 = Element("bf16", 16, np.uint16, _from_bf16, min_normal=2.0**-126)
F32 = Element("f32", 32, np.float32, _cast, is_float=True, min_normal=2.0**-126)
F64E = Element("f64", 64, np.float64, _cast, is_float=True)
XF32 = Element("xf32", 32, np.float32, _from_xf32, is_float=True)
I32 = Element("i32", 32, np.int32, _cast)
I8 = Element("i8", 8, np.int8, _cast)
U8 = Element("u8", 8, np.uint8, _cast)
I4 = Element("i4", 4, np.uint8, _from_table(np.where(_NIBBLES > 7, _NIBBLES - 16, _NIBBLES)))
U4 = Element("u4", 4, np.uint8, _from_table(_NIBBLES))
FP6 = _table_element(numerics.E2M3FN, "fp6")
BF6 = _table_element(numerics.E3M2FN, "bf6")
FP4 = _table_element(numerics.E2M1FN, "fp4")
_FP8 = {
    (name, flavour): _table_element(pick(flavour), name)
    for name, pick in (("fp8", numerics.fp8), ("bf8", numerics.bf8))
    for flavour in ("fnuz", "ocp")
}


def fp8_element(name: str, flavour: str | None) -> Element:
    """The element ``fp8`` or ``bf8`` in the flavour of a chip (`Chip.fp8`)."""
    element = _FP8.get((name, flavour or ""))
    if element is None:
        numerics.fp8(flavour)  # raises: the chip has no 8-bit floats
        raise SimError(f"unknown 8-bit float {name!r}", fix="one of: fp8, bf8")
    return element


class Fetch:
    """Reads the elements of one operand, in a chosen order, out of the register arrays of all waves.

    Args:
        element: Format of the elements.
        lanes: Lanes in a wave.
        count: Values per lane.
        index: Flat positions ``lane * count + value`` to read.
        flush: Whether denormals read as zero.
        replicas: Copies of the operand in equal shares of the lanes; they must agree bit for bit.

    Shape: ``index`` may have any shape.
    """

    __slots__ = ("_byte", "_flat", "_mask", "_shift", "count", "element", "flush", "lanes", "replicas", "shape")

    def __init__(
        self, element: Element, lanes: int, count: int, index: Index, *, flush: bool = False, replicas: int = 1
    ) -> None:
        self.element = element
        self.lanes = lanes
        self.count = count
        self.shape = index.shape
        self._flat = index.reshape(-1)
        self.flush = flush and element.min_normal > 0
        self.replicas = replicas
        bit = self._flat * element.bits
        self._byte = bit >> 3
        self._shift = (bit & 7).astype(np.uint16)
        self._mask = np.uint16((1 << min(element.bits, 8)) - 1)

    @property
    def lane_bytes(self) -> int:
        """Register bytes that a lane holds of this operand."""
        return self.count * self.element.bits // 8

    def check(self, what: str, raw: AnyArray) -> None:
        """Raises `SimError` unless an argument has the bytes and the type that this operand is made of."""
        kind = raw.dtype.kind
        good = (
            raw.ndim >= 2 and raw.shape[1] == self.lanes and raw.nbytes == raw.shape[0] * self.lanes * self.lane_bytes
        )
        if good and (raw.dtype == self.element.dtype if self.element.is_float else kind in "iuV"):
            return
        name = self.element.name
        raise SimError(
            f"operand {what} is {raw.dtype} of shape {raw.shape}",
            fix=f"{self.count} {name} values per lane in {self.lanes} lanes ({self.lane_bytes} bytes per lane)",
        )

    def __call__(self, raw: AnyArray, out: F64) -> F64:
        """Writes the elements to ``out``, of shape ``(waves, *index.shape)``, and returns it."""
        waves = raw.shape[0]
        element = self.element
        flat = np.ascontiguousarray(raw).reshape(waves, -1).view(element.dtype)
        if self.replicas > 1:
            self._check_replicas(flat)
        picked = flat.take(self._flat, axis=1) if element.bits >= 8 else self._narrow(flat)
        element.widen(picked, out.reshape(waves, -1))
        if self.flush:
            out[np.abs(out) < element.min_normal] = 0.0
        return out

    def _narrow(self, flat: AnyArray) -> AnyArray:
        word = flat.take(self._byte, axis=1)
        if self.element.bits == 6:  # a code may straddle two bytes
            following = np.minimum(self._byte + 1, flat.shape[1] - 1)
            word = word | (flat.take(following, axis=1).astype(np.uint16) << 8)
        return (word >> self._shift) & self._mask

    def _check_replicas(self, flat: AnyArray) -> None:
        copies = flat.view(np.uint8).reshape(flat.shape[0], self.replicas, -1)
        if (copies[:, 1:] == copies[:, :1]).all():
            return
        wave, copy, byte = (int(x[0]) for x in np.nonzero(copies[:, 1:] != copies[:, :1]))
        share = self.lanes // self.replicas
        lane = byte // self.lane_bytes
        raise SimError(
            f"wave {wave}: lanes {lane} and {lane + (copy + 1) * share} hold different copies of a replicated operand",
            fix=f"give lane l and lane l + {share} the same A (and B) values: the hardware reads either copy",
        )


class Store:
    """Adds the accumulator to a product and rounds it into the registers of the result.

    Args:
        element: Format of accumulator and result.
        lanes: Lanes in a wave.
        count: Values per lane, slots without an element included.
        index: For each flat position ``lane * count + value`` the flat element ``(block * M + m) * N + n`` it holds,
        or -1.
        flush: Whether denormals of the accumulator and the result are zero.
        negate, absolute: Modifiers on the accumulator.
        clamp: Whether integer results saturate instead of wrapping.
        keep_unused: Whether slots without an element keep the accumulator's bits; otherwise they are undefined, written
            as all ones (a NaN) so that a use shows.
        result: Format of the result where it differs from the accumulator's.
    """

    __slots__ = (
        "_all_used",
        "_flat",
        "_slots",
        "absolute",
        "clamp",
        "count",
        "element",
        "flush",
        "keep_unused",
        "lanes",
        "negate",
        "result",
    )

    def __init__(
        self,
        element: Element,
        lanes: int,
        count: int,
        index: Index,
        *,
        flush: bool = False,
        negate: bool = False,
        absolute: bool = False,
        clamp: bool = False,
        keep_unused: bool = True,
        result: Element | None = None,
    ) -> None:
        self.element = element
        self.lanes = lanes
        self.count = count
        flat = index.reshape(-1)
        self._slots = np.flatnonzero(flat >= 0)
        self._flat = flat[self._slots]
        self._all_used = self._slots.size == flat.size
        self.flush = flush
        self.negate = negate
        self.absolute = absolute
        self.clamp = clamp
        self.keep_unused = keep_unused
        self.result = result or element

    def check(self, raw: AnyArray) -> None:
        """Raises `SimError` unless the accumulator has the type and size of this row."""
        wanted = self.element
        size = raw.ndim >= 2 and raw.shape[1] == self.lanes and raw.size == raw.shape[0] * self.lanes * self.count
        kind = raw.dtype == wanted.dtype if wanted.is_float else raw.dtype.kind in "iu"
        if not (size and kind and raw.dtype.itemsize * 8 == wanted.bits):
            raise SimError(
                f"the accumulator is {raw.dtype} of shape {raw.shape}",
                fix=f"{self.count} {wanted.name} values per lane in {self.lanes} lanes",
            )

    @property
    def used(self) -> int:
        """Number of elements in a wave's registers."""
        return self._flat.size

    def __call__(self, product: F64, raw: AnyArray, spread: F64) -> AnyArray:
        """The result registers.

        Args:
            product: Matrices of all waves and blocks; left as they are.
            raw: The accumulator's registers.
            spread: Work space of shape ``(waves, used)``; its content is lost.
        """
        waves = product.shape[0]
        product.reshape(waves, -1).take(self._flat, axis=1, out=spread, mode="clip")
        flat = np.ascontiguousarray(raw).reshape(waves, -1)
        old = flat if self._all_used else flat.take(self._slots, axis=1)
        done = self._integer(spread, old) if self.element is I32 else self._float(spread, old)
        if self._all_used:
            out = done
        else:
            out = flat.copy() if self.keep_unused else np.full_like(flat.view(np.uint16), 0xFFFF).view(flat.dtype)
            out[:, self._slots] = done
        return out.reshape(raw.shape)

    def _integer(self, spread: F64, old: AnyArray) -> AnyArray:
        if self.clamp:
            total = spread.astype(np.int64) + old.view(np.int32)
            done = np.clip(total, -(2**31), 2**31 - 1).astype(np.int32)
        else:
            done = spread.astype(np.int32) + old.view(np.int32)
        return done.view(old.dtype)

    def _float(self, spread: F64, old: AnyArray) -> AnyArray:
        element = self.element
        start: AnyArray = old if element.is_float else numerics.decode_bf16(old)
        if self.flush:
            start = np.where(np.abs(start) < element.min_normal, 0.0, start)
        if self.absolute:
            start = np.abs(start)
        total: F64 = (np.subtract if self.negate else np.add)(spread, start, out=spread)
        result = self.result
        if result is BF16:
            return numerics.encode_bf16_from_f64(total).view(np.uint16)
        done: AnyArray = total.astype(result.dtype)
        if self.flush:
            done[np.abs(done) < result.min_normal] = 0
        return done


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

    def __call__(self, *registers: AnyArray) -> AnyArray:
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
        product = np.matmul(a, b, out=scratch.product)
        if self.negate:
            np.negative(product, out=product)
        return self.c(product, c, scratch.spread)


Prepared = Callable[..., AnyArray]


def grid(*sizes: int) -> list[Index]:
    """Coordinate arrays of a box, ready for lane formulas.  Shape: each ``sizes``."""
    return list(np.indices(sizes))


def split_arguments(name: str, args: Sequence[Any], immediates: Sequence[int]) -> tuple[list[int], list[AnyArray]]:
    """Splits LLVM arguments into the immediates (by position) and the register arrays, each in order."""
    imms: list[int] = []
    arrays: list[AnyArray] = []
    for position, arg in enumerate(args):
        if position in immediates:
            if not isinstance(arg, int):
                raise SimError(f"{name}: argument {position} must be an immediate", fix="pass a constant")
            imms.append(int(arg))
        else:
            arrays.append(np.asarray(arg))
    return imms, arrays
