"""Products with a 2:4 sparse A: smfmac of gfx942 and gfx950, swmmac of gfx1200, gfx1201 and gfx1250.

A holds two of every four values of K, packed; an index of two bits per kept value says which.  Packed value ``c`` of a
row is dense ``k = 4*(c // 2) + index``; the two indices of a group must be in increasing order.  The index bits of a
value sit
in the lane that holds the value: bits ``2*v`` and up for value ``v`` of that lane.

Lane formulas:

- smfmac, tile MNxMNxK, G = 64/MN lane groups: packed A as a dense MFMA operand of depth K/2, lane ``m + MN*(c // V)``,
  value ``c % V``.  B in chunks of 128 bits (x values), lane ``n + MN*(k // x % G)``, value ``x*(k // (x*G)) + k % x``.
  C and D as MFMA.  Where a lane needs fewer than 32 index bits, ABID chooses the set of bits if CBSZ is 0.
- swmmac: packed A as a dense WMMA operand of depth K/2.  B in wave32: chunks of 8 (16-bit) or 16 (8-bit and 4-bit)
  values.  B in wave64: 16-bit in chunks of 8 over four groups; 8-bit lane ``n + 16*(k // 16) + 32*(k // 8 % 2)``; 4-bit
  lane ``n + 16*(k // 32) + 32*(k // 16 % 2)``.  C and D as WMMA.
- swmmac of gfx1250: packed A as its dense WMMA operand of depth K/2 (chunks of 8), B in chunks of 16.
- swmmac.bf16f32 of gfx1250: C is f32, D is bf16 in the first half of the registers of C.  What is in the other half is
  not told; it is written as NaN, so that a use shows.

The published table leaves the map of A to the manual; the integer rows of swmmac, the doubled rows of gfx950 and all
rows of gfx1250 are not in it.  AMD's public emulator has the same pairing of A with B in all of them, up to a K order
that A and B share.  Public sources contradict each other on the index of gfx1250, and so does the CDNA5 ISA manual
itself: its words (7.12.3) have an index in the lane of its value, which is assumed and which the machine warns of; an
expression in 7.12.4 takes the lane from bit 5 of the column.

Source: CDNA3 and CDNA4 ISA manuals, "Sparse Matrices" (index layouts, CBSZ and ABID); RDNA4 ISA manual, SWMMAC.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ..errors import SimError
from ..target import Target
from . import matrix_core as core, matrix_wmma
from .matrix_element import F64, AnyArray, element_for
from .matrix_fragment import Fetch, Index, Store
from .matrix_mfma import output_index

_CDNA3: tuple[str, ...] = ("gfx942", "gfx950")
_950: tuple[str, ...] = ("gfx950",)
_GFX12 = ("gfx1200", "gfx1201")
_BITS = {"f16": 16, "bf16": 16, "fp8": 8, "bf8": 8, "i8": 8, "iu8": 8, "iu4": 4}


class SparseIndex:
    """Reads the dense position of every packed value.

    Args:
        lanes: Lanes in a wave.
        place: Flat positions ``lane * count + value`` of packed A.  Shape: ``(rows, K/2)``.
        count: Packed values per lane.
        first_bit: Bit of the index register where a lane's set begins.
    """

    __slots__ = ("_bit", "_group", "_lane", "bits", "lanes")

    def __init__(self, lanes: int, place: Index, count: int, first_bit: int) -> None:
        self.lanes = lanes
        self.bits = first_bit + 2 * count
        self._lane = place // count
        self._bit = (first_bit + 2 * (place % count)).astype(np.uint64)
        self._group = 4 * (np.arange(place.shape[1]) // 2)

    def lane_of(self, packed: int) -> int:
        """The lane with the index of a packed value of row 0; those of the next rows follow."""
        return int(self._lane[0, packed])

    def bits_of(self, packed: int) -> tuple[int, int]:
        """Where the indices of a packed value and the next one begin, in the lanes of all rows."""
        return int(self._bit[0, packed]), int(self._bit[0, packed + 1])

    def __call__(self, raw: AnyArray) -> Index:
        """Dense k of every packed value.  Shape: ``(waves, rows, K/2)``."""
        if raw.ndim != 2 or raw.shape[1] != self.lanes or raw.dtype.kind not in "iu":
            raise SimError(f"the index is {raw.dtype} of shape {raw.shape}", fix=f"one integer in {self.lanes} lanes")
        if raw.dtype.itemsize * 8 < self.bits:
            raise SimError(f"the index is {raw.dtype}", fix=f"an integer of at least {self.bits} bits")
        words = raw.astype(np.uint64)
        kept: Index = ((words[:, self._lane] >> self._bit) & np.uint64(3)).astype(np.intp)
        wrong = kept[..., 0::2] >= kept[..., 1::2]
        if wrong.any():
            wave, row, pair = (int(x[0]) for x in np.nonzero(wrong))
            first, second = kept[wave, row, 2 * pair], kept[wave, row, 2 * pair + 1]
            raise SimError(
                f"sparse index of wave {wave}, row {row}, group {pair} is ({first}, {second})",
                fix="the two positions of a group of four must be in increasing order",
            )
        return kept + self._group


class SparseProduct(core.Product):
    """`Product` whose A is packed.  Calls take A, B, C and the index."""

    __slots__ = ("index",)

    def __init__(self, a: Fetch, b: Fetch, c: Store, index: SparseIndex, *, negate: bool = False) -> None:
        super().__init__(a, b, c, negate=negate)
        self.index = index

    def __call__(self, *registers: Any) -> AnyArray:
        a, b, c, raw_index = registers
        self.a.check("A", a)
        self.b.check("B", b)
        self.c.check(c)
        waves = a.shape[0]
        position = self.index(np.asarray(raw_index))
        packed = self.a(a, np.empty((waves, *self.a.shape)))
        dense: F64 = np.zeros((waves, self.a.shape[0], self.b.shape[0]))
        np.put_along_axis(dense, position, packed, axis=2)
        with np.errstate(all="ignore"):
            right = self.b(b, np.empty((waves, *self.b.shape)))
            product = dense @ right
            if self.negate:
                np.negative(product, out=product)
            return self.c(product, c, np.empty((waves, self.c.used)))


def smfmac_b_index(mn: int, k: int, bits: int) -> Index:
    """Where B[k][n] sits, as ``[n][k]``.  Shape: ``(MN, K)``."""
    column, depth = core.grid(mn, k)
    return core.chunked(column, depth, 128 // bits, mn, 64 // mn, k * mn // 64)


def build_smfmac(
    name: str, mn: int, k: int, a: str, b: str, acc: str, immediates: tuple[int, ...], wave: int, target: Target
) -> core.Prepared:
    """smfmac as a function of A, B, C and the index."""
    cbsz, abid = immediates
    bits = _BITS[a]
    count = k * mn // 128
    sets = 32 // (2 * count)
    core.check_flag(name, "cbsz", cbsz, 7)
    core.check_flag(name, "abid", abid, 15)
    if cbsz & 3 == 0 and abid >= sets:
        raise SimError(f"{name}: abid {abid} with {sets} set(s) of index bits", fix=f"abid 0 to {sets - 1}, or cbsz 1")
    first_bit = 0 if cbsz & 3 else 2 * count * abid
    row, packed = core.grid(mn, k // 2)
    place = (row + mn * (packed // count)) * count + packed % count
    values = mn * mn // 64
    flavour = target.chip.fp8
    return SparseProduct(
        Fetch(element_for(a, flavour), 64, count, place),
        Fetch(element_for(b, flavour), 64, 2 * count, smfmac_b_index(mn, k, bits).T),
        Store(element_for(acc, flavour), 64, values, core.inverse(output_index(mn, 1, 4), 64 * values)),
        SparseIndex(64, place, count, first_bit),
    )


def swmmac_b_index(k: int, bits: int, wave: int) -> tuple[Index, int]:
    """Where B[k][n] sits, as ``[n][k]``, and the values per lane.  Shape: ``(16, K)``."""
    column, depth = core.grid(16, k)
    count = 16 * k // wave
    if wave == 32:
        return core.chunked(column, depth, 8 if bits == 16 else 16, 16, 2, count), count
    if bits == 16:
        return core.chunked(column, depth, 8, 16, 4, count), count
    lane = column + 16 * (depth // (2 * count)) + 32 * (depth // count % 2)
    return lane * count + depth % count, count


def build_swmmac(
    name: str, k: int, a: str, b: str, acc: str, immediates: tuple[int, ...], wave: int, target: Target
) -> core.Prepared:
    """swmmac as a function of A, B, C and the index."""
    sign_a, sign_b, clamp = immediates if a.startswith("iu") else (0, 0, 0)
    for what, value in (("signed A", sign_a), ("signed B", sign_b), ("clamp", clamp)):
        core.check_flag(name, what, value)
    bits, flavour = _BITS[a], target.chip.fp8
    if wave == 64 and bits == 4 and k == 32:
        raise SimError(f"{name} has no wave64 form in LLVM", fix="simulate with wave_size=32")
    place, count, _ = matrix_wmma.gfx12_input(k // 2, bits, wave)
    b_index, b_count = swmmac_b_index(k, bits, wave)
    out, values = matrix_wmma.output_index(target.processor, wave)
    return SparseProduct(
        Fetch(element_for(matrix_wmma.element_name(a, sign_a), flavour), wave, count, place),
        Fetch(element_for(matrix_wmma.element_name(b, sign_b), flavour), wave, b_count, b_index.T),
        Store(element_for(acc, flavour), wave, values, core.inverse(out, wave * values), clamp=bool(clamp)),
        SparseIndex(wave, place, count, 0),
    )


def gfx1250_places(k: int) -> tuple[Index, Index]:
    """Where packed A[m][c] and B[k][n] (as ``[n][k]``) sit.  Shape: ``(16, K/2)`` and ``(16, K)``."""
    row, packed = core.grid(16, k // 2)
    column, depth = core.grid(16, k)
    return core.chunked(row, packed, 8, 16, 2, k // 4), core.chunked(column, depth, 16, 16, 2, k // 2)


def build_swmmac_gfx1250(
    name: str,
    k: int,
    a: str,
    b: str,
    acc: str,
    form: dict[int, str],
    immediates: tuple[int, ...],
    wave: int,
    target: Target,
    result: str | None = None,
) -> SparseProduct:
    """swmmac of gfx1250 as a function of A, B, C and the index (64 bits where K is 128)."""
    flags = dict(zip(form.values(), immediates))
    for what, value in flags.items():
        core.check_flag(name, what, value)
    flavour = target.chip.fp8
    row, packed = core.grid(16, k // 2)
    column, depth = core.grid(16, k)
    place = core.chunked(row, packed, 8, 16, 2, k // 4)
    out, values = matrix_wmma.output_index(target.processor, 32)
    return SparseProduct(
        Fetch(element_for(matrix_wmma.element_name(a, flags.get("signed A", 0)), flavour), 32, k // 4, place),
        Fetch(
            element_for(matrix_wmma.element_name(b, flags.get("signed B", 0)), flavour),
            32,
            k // 2,
            core.chunked(column, depth, 16, 16, 2, k // 2).T,
        ),
        Store(
            element_for(acc, flavour),
            32,
            values,
            core.inverse(out, 32 * values),
            clamp=bool(flags.get("clamp", 0)),
            result=element_for(result or acc, flavour),
        ),
        SparseIndex(32, place, k // 4, 0),
        negate=bool(flags.get("neg A", 0) ^ flags.get("neg B", 0)),
    )


def build_swmmac_halved(
    name: str, k: int, a: str, b: str, form: dict[int, str], immediates: tuple[int, ...], wave: int, target: Target
) -> core.Prepared:
    """swmmac of gfx1250 with C in f32 and D in bf16, whose registers are the first half of those of C.

    Source: CDNA5 ISA manual, V_SWMMAC_BF16F32_16X16X64_BF16.
    """
    product = build_swmmac_gfx1250(name, k, a, b, "f32", form, immediates, wave, target, result="bf16")

    def run(*registers: Any) -> AnyArray:
        codes = product(*registers)
        out = np.full(codes.shape, np.nan, np.float32)
        out.view(np.uint16)[..., : codes.shape[-1]] = codes
        return out

    return run


_FP8_PAIRS = tuple((a, b) for a in ("fp8", "bf8") for b in ("fp8", "bf8"))


def _smfmac() -> list[core.Intrinsic]:
    rows: list[tuple[str, int, int, str, str, str, tuple[str, ...]]] = []
    for mn, k in ((16, 32), (32, 16)):
        for scale, targets in ((1, _CDNA3), (2, _950)):
            for element in ("f16", "bf16"):
                rows.append((f"f32.{mn}x{mn}x{scale * k}.{element}", mn, scale * k, element, element, "f32", targets))
            depth = 2 * scale * k
            rows.append((f"i32.{mn}x{mn}x{depth}.i8", mn, depth, "i8", "i8", "i32", targets))
            for a, b in _FP8_PAIRS:
                rows.append((f"f32.{mn}x{mn}x{depth}.{a}.{b}", mn, depth, a, b, "f32", targets))
    found = []
    for short, mn, k, a, b, acc, targets in rows:
        name = f"smfmac.{short}"
        build = partial(build_smfmac, name, mn, k, a, b, acc)
        found.append(core.Intrinsic(name, targets, (64,), {4: "cbsz", 5: "abid"}, 2 * mn * mn * k, build))
    return found


def _swmmac() -> list[core.Intrinsic]:
    rows = [
        ("f32.16x16x32.f16", 32, "f16", "f16", "f32"),
        ("f32.16x16x32.bf16", 32, "bf16", "bf16", "f32"),
        ("f16.16x16x32.f16", 32, "f16", "f16", "f16"),
        ("bf16.16x16x32.bf16", 32, "bf16", "bf16", "bf16"),
        ("i32.16x16x32.iu8", 32, "iu8", "iu8", "i32"),
        ("i32.16x16x32.iu4", 32, "iu4", "iu4", "i32"),
        ("i32.16x16x64.iu4", 64, "iu4", "iu4", "i32"),
        *((f"f32.16x16x32.{a}.{b}", 32, a, b, "f32") for a, b in _FP8_PAIRS),
    ]
    found = []
    for short, k, a, b, acc in rows:
        name = f"swmmac.{short}"
        constants = {0: "signed A", 2: "signed B", 6: "clamp"} if a.startswith("iu") else {}
        build = partial(build_swmmac, name, k, a, b, acc)
        found.append(core.Intrinsic(name, _GFX12, (32, 64), constants, 2 * 16 * 16 * k, build))
    return found


def _swmmac_gfx1250() -> list[core.Intrinsic]:
    negated = {0: "neg A", 2: "neg B", 6: "reuse A", 7: "reuse B"}
    reused = {4: "reuse A", 5: "reuse B"}
    integer = {0: "signed A", 2: "signed B", 6: "reuse A", 7: "reuse B", 8: "clamp"}
    rows = [(f"{acc}.16x16x64.{x}", 64, x, x, acc, negated) for x in ("f16", "bf16") for acc in ("f32", x)]
    for a, b in _FP8_PAIRS:
        rows += [(f"{acc}.16x16x128.{a}.{b}", 128, a, b, acc, reused) for acc in ("f32", "f16")]
    rows.append(("i32.16x16x128.iu8", 128, "iu8", "iu8", "i32", integer))
    found = []
    for short, k, a, b, acc, form in rows:
        build = partial(build_swmmac_gfx1250, f"swmmac.{short}", k, a, b, acc, form)
        found.append(core.Intrinsic(f"swmmac.{short}", ("gfx1250",), (32,), form, 2 * 16 * 16 * k, build))
    name = "swmmac.bf16f32.16x16x64.bf16"
    halved = partial(build_swmmac_halved, name, 64, "bf16", "bf16", negated)
    found.append(core.Intrinsic(name, ("gfx1250",), (32,), negated, 2 * 16 * 16 * 64, halved))
    return found


INTRINSICS: dict[str, core.Intrinsic] = {i.name: i for i in (*_smfmac(), *_swmmac(), *_swmmac_gfx1250())}
#: Intrinsics whose meaning here rests on an assumption, with what it is.
ASSUMED = dict.fromkeys(
    [i.name for i in _swmmac_gfx1250()],
    "public sources contradict each other on its index; one in the lane of its value is assumed",
)
