"""Reading and writing matrix fragments: gathers between the registers of all waves and float64 matrices."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..errors import SimError
from . import numerics
from .matrix_element import BF16, F64, I32, AnyArray, Element

Index = NDArray[np.intp]


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

    def places(self) -> tuple[Index, Index]:
        """Byte of a wave's registers in which each element begins, and the bit in it.  Shape: that of the index."""
        return self._byte.reshape(self.shape), self._shift.astype(np.intp).reshape(self.shape)

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
            codes = numerics.encode_bf16_from_f64(total)
            return codes if element is not BF16 else codes.view(old.dtype)
        done: AnyArray = total.astype(result.dtype)
        if self.flush:
            done[np.abs(done) < result.min_normal] = 0
        return done
