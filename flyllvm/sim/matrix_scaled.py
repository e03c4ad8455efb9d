"""Block-scaled products: mfma.scale of gfx950, wmma.scale and wmma.scale16 of gfx1250, and gfx1250's f8f6f4 without
scales.

Each operand has its own format (code 0 fp8, 1 bf8, 2 fp6 e2m3, 3 bf6 e3m2, 4 fp4) and one E8M0 scale ``2**(byte -
127)`` per row and block of 32 (or 16) values of K.  Lane formulas, ``r`` the row of A or column of B:

- gfx950, tile MN x MN x K, G = 64/MN: 8-bit elements in chunks of 16 over the lane groups, lane
  ``r + MN*(k // 16 % G)``, value ``16*(k // (16*G)) + k % 16``; 6-bit and 4-bit in chunks of 32, value ``k % 32``.
  Scale of row r and block kb: byte ``opsel`` of lane ``r + MN*kb``.  C and D as MFMA.
- gfx1250: the same chunks over two groups of 16 lanes.  Scale: byte kb of lane ``r + 16*opsel``, which may be unsigned
  E5M3 or OCP E4M3 too (formats 1 and 2).  The 32-row A of the fp4 form puts row ``m`` at value ``64*(m // 16) + ...``
  and takes the scale of row m from lane m; its C and D: lane ``n + 16*(m // 8 % 2)``, value ``m % 8 + 8*(m // 16)``.

LLVM turns mfma.scale with two constant zero scales into the unscaled instruction (scale one).  A scale *register* of
zero means ``2**-127``.  So a constant scale must be passed as a Python int, and a scale in a register as an array.

Single-sourced: the fp6 maps of gfx1250, everything about the 32-row form, and the scale formats other than E8M0 (AMD's
public emulator).  Unscaled products of an 8-bit with a narrower format on gfx1250 (sources disagree on the K order) are
refused.

Source: CDNA4 ISA manual 7.1.5 and 7.2; LLVM 22 instruction selection (constant zero scales, found by experiment); the
gfx1250 maps are those of compilers and libraries, not those of an ISA manual.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ..errors import SimError
from ..target import Target
from . import matrix_core as core, numerics
from .matrix_element import F64, AnyArray, element_for
from .matrix_fragment import Fetch, Index, Store
from .matrix_mfma import output_index

FORMATS = ("fp8", "bf8", "fp6", "bf6", "fp4")


class ScaleFetch:
    """Reads scales as factors.

    Args:
        decode: Factors of scale bytes; E8M0 unless given.

    Shape: ``index`` is ``(rows, blocks of K)``, of flat byte positions ``lane * lane_bytes + byte``; a call returns
    ``(waves, rows, blocks of K)``.
    """

    __slots__ = ("decode", "index", "lane_bytes", "lanes", "name")

    def __init__(
        self,
        name: str,
        lanes: int,
        lane_bytes: int,
        index: Index,
        decode: Callable[[AnyArray], F64] = numerics.decode_e8m0,
    ) -> None:
        self.decode = decode
        self.name = name
        self.lanes = lanes
        self.lane_bytes = lane_bytes
        self.index = index

    def __call__(self, raw: AnyArray | int, waves: int) -> F64:
        if isinstance(raw, int):
            word = raw.to_bytes(self.lane_bytes, "little", signed=raw < 0)
            flat = np.tile(np.frombuffer(word, np.uint8), self.lanes)[None, :]
        elif raw.shape != (waves, self.lanes) or raw.dtype.itemsize != self.lane_bytes or raw.dtype.kind not in "iu":
            raise SimError(
                f"{self.name} is {raw.dtype} of shape {raw.shape}",
                fix=f"one i{8 * self.lane_bytes} in {self.lanes} lanes",
            )
        else:
            flat = np.ascontiguousarray(raw).view(np.uint8).reshape(waves, -1)
        return self.decode(flat[:, self.index])


class ScaledProduct(core.Product):
    """`Product` with a factor per row and K block on both operands.  Calls take A, B, C, scale of A, scale of B.

    Attributes:
        unscaled_at_zero: Whether two constant zero scales mean the unscaled instruction.
    """

    __slots__ = ("scale_a", "scale_b", "unscaled_at_zero")

    def __init__(
        self, a: Fetch, b: Fetch, c: Store, scale_a: ScaleFetch, scale_b: ScaleFetch, *, unscaled_at_zero: bool
    ) -> None:
        super().__init__(a, b, c)
        self.scale_a = scale_a
        self.scale_b = scale_b
        self.unscaled_at_zero = unscaled_at_zero

    def __call__(self, *registers: Any) -> AnyArray:
        a, b, c, scale_a, scale_b = registers
        constant_zero = isinstance(scale_a, int) and isinstance(scale_b, int) and scale_a == scale_b == 0
        if self.unscaled_at_zero and constant_zero:
            return super().__call__(a, b, c)
        self.a.check("A", a)
        self.b.check("B", b)
        self.c.check(c)
        waves = a.shape[0]
        with np.errstate(all="ignore"):
            scratch = self.take_scratch(waves)
            left, right = self.a(a, scratch.a), self.b(b, scratch.b)
            factor_a = self.scale_a(scale_a, waves)
            factor_b = self.scale_b(scale_b, waves)
            rows, blocks = factor_a.shape[1:]
            split = left.reshape(waves, rows, blocks, -1)
            split *= factor_a[..., None]
            columns = factor_b.shape[1]
            split = right.reshape(waves, blocks, -1, columns)
            split *= factor_b.swapaxes(1, 2)[:, :, None, :]
            out = self.finish(scratch, left, right, c)
        self.give_scratch(scratch)
        return out


def format_of(name: str, what: str, code: int) -> str:
    """The element name of a format code.

    Raises:
        SimError: The code names no format.
    """
    if not 0 <= code < len(FORMATS):
        raise SimError(f"{name}: {what} is {code}", fix="one of 0 fp8, 1 bf8, 2 fp6, 3 bf6, 4 fp4")
    return FORMATS[code]


def input_index(element: str, rows: int, k: int, groups: int) -> Index:
    """Where A[r][k] sits for one operand of a scaled product.  Shape: ``(rows, K)``."""
    row, depth = core.grid(rows, k)
    return core.chunked(row, depth, 16 if element in ("fp8", "bf8") else 32, rows, groups, k // groups)


def input_index_32_rows() -> Index:
    """Where A[m][k] sits in the 32x16x128 fp4 form.  Shape: ``(32, 128)``."""
    m, k = core.grid(32, 128)
    return (m % 16 + 16 * (k // 32 % 2)) * 128 + 64 * (m // 16) + 32 * (k // 64) + k % 32


def output_index_gfx1250(rows: int) -> Index:
    """Where D[m][n] sits in the 16-row and 32-row forms of gfx1250.  Shape: ``(rows, 16)``."""
    m, n = core.grid(rows, 16)
    return (n + 16 * (m // 8 % 2)) * (rows // 2) + m % 8 + 8 * (m // 16)


def build_mfma(name: str, mn: int, k: int, immediates: tuple[int, ...], wave: int, target: Target) -> core.Prepared:
    """mfma.scale as a function of A, B, C, scale of A, scale of B (constants as ints)."""
    cbsz, blgp, opsel_a, opsel_b = immediates
    a, b = format_of(name, "cbsz", cbsz), format_of(name, "blgp", blgp)
    core.check_flag(name, "opsel of A", opsel_a, 3)
    core.check_flag(name, "opsel of B", opsel_b, 3)
    flavour, groups = target.chip.fp8, 64 // mn
    row, block = core.grid(mn, k // 32)
    lane = row + mn * block
    count = mn * mn // 64
    return ScaledProduct(
        Fetch(element_for(a, flavour), 64, 32, input_index(a, mn, k, groups)),
        Fetch(element_for(b, flavour), 64, 32, input_index(b, mn, k, groups).T),
        Store(element_for("f32", flavour), 64, count, core.inverse(output_index(mn, 1, 4), 64 * count)),
        ScaleFetch("the scale of A", 64, 4, lane * 4 + opsel_a),
        ScaleFetch("the scale of B", 64, 4, lane * 4 + opsel_b),
        unscaled_at_zero=True,
    )


class Wmma:
    """The operands of one f8f6f4 (or f4) form of gfx1250, before scales."""

    __slots__ = ("a", "b", "c", "rows")

    def __init__(self, name: str, rows: int, code_a: int, code_b: int, modifier: int, target: Target) -> None:
        core.check_flag(name, "modifier of C", modifier, 3)
        flavour = target.chip.fp8
        a, b = format_of(name, "format of A", code_a), format_of(name, "format of B", code_b)
        a_index = input_index(a, 16, 128, 2) if rows == 16 else input_index_32_rows()
        self.rows = rows
        self.a = Fetch(element_for(a, flavour), 32, 4 * rows, a_index)
        self.b = Fetch(element_for(b, flavour), 32, 64, input_index(b, 16, 128, 2).T)
        out = core.inverse(output_index_gfx1250(rows), 16 * rows)
        self.c = Store(
            element_for("f32", flavour), 32, rows // 2, out, negate=bool(modifier & 1), absolute=bool(modifier & 2)
        )


def _scale_of(name: str, which: str, rows: int, block: int, opsel: int, fmt: int) -> ScaleFetch:
    core.check_flag(name, f"scale format of {which}", fmt, 2)
    core.check_flag(name, f"scale selector of {which}", opsel, 1 if rows == 16 else 0)
    row, kb = core.grid(rows, 128 // block)
    lane_bytes = 128 // block
    decode = (numerics.decode_e8m0, numerics.UE5M3.table64.take, numerics.E4M3FN.table64.take)[fmt]
    return ScaleFetch(f"the scale of {which}", 32, lane_bytes, (row + 16 * opsel) * lane_bytes + kb, decode)


def build_wmma(
    name: str, rows: int, block: int, immediates: tuple[int, ...], wave: int, target: Target
) -> core.Prepared:
    """wmma.scale (block 32) or wmma.scale16 (block 16) as a function of A, B, C, scale of A, scale of B."""
    fmt_a, fmt_b, *rest = immediates if rows == 16 else (4, 4, *immediates)
    modifier, opsel_a, kind_a, opsel_b, kind_b, reuse_a, reuse_b = rest
    core.check_flag(name, "reuse A", reuse_a)
    core.check_flag(name, "reuse B", reuse_b)
    parts = Wmma(name, rows, fmt_a, fmt_b, modifier, target)
    return ScaledProduct(
        parts.a,
        parts.b,
        parts.c,
        _scale_of(name, "A", rows, block, opsel_a, kind_a),
        _scale_of(name, "B", 16, block, opsel_b, kind_b),
        unscaled_at_zero=False,
    )


def build_unscaled(name: str, rows: int, immediates: tuple[int, ...], wave: int, target: Target) -> core.Prepared:
    """The f8f6f4 and f4 forms of gfx1250 without scales, as a function of A, B, C."""
    fmt_a, fmt_b, modifier = immediates if rows == 16 else (4, 4, *immediates)
    parts = Wmma(name, rows, fmt_a, fmt_b, modifier, target)
    if (parts.a.element.bits == 8) != (parts.b.element.bits == 8):
        raise SimError(
            f"{name}: {FORMATS[fmt_a]} with {FORMATS[fmt_b]}: public sources disagree on the K order of this mix",
            fix="use wmma.scale with scales of one (E8M0 byte 127)",
        )
    return core.Product(parts.a, parts.b, parts.c)


def _constants(rows: int, scaled: bool) -> dict[int, str]:
    """Constant arguments of a gfx1250 form by position."""
    head = {0: "format of A", 2: "format of B", 4: "modifier of C"} if rows == 16 else {2: "modifier of C"}
    if not scaled:
        return head
    names = (
        "scale selector of A",
        "scale format of A",
        "scale selector of B",
        "scale format of B",
        "reuse A",
        "reuse B",
    )
    places = (6, 7, 9, 10, 12, 13) if rows == 16 else (4, 5, 7, 8, 10, 11)
    return {**head, **dict(zip(places, names))}


def _intrinsics() -> dict[str, core.Intrinsic]:
    found: list[core.Intrinsic] = []
    for mn, k in ((16, 128), (32, 64)):
        name = f"mfma.scale.f32.{mn}x{mn}x{k}.f8f6f4"
        constants = {3: "cbsz", 4: "blgp", 5: "opsel of A", 7: "opsel of B"}
        build = partial(build_mfma, name, mn, k)
        found.append(core.Intrinsic(name, ("gfx950",), (64,), constants, 2 * mn * mn * k, build))
    for rows, shape in ((16, "16x16x128.f8f6f4"), (32, "32x16x128.f4")):
        work = 2 * rows * 16 * 128
        for prefix, block in (("wmma", 0), ("wmma.scale", 32), ("wmma.scale16", 16)):
            name = f"{prefix}.f32.{shape}"
            make = partial(build_wmma, name, rows, block) if block else partial(build_unscaled, name, rows)
            found.append(core.Intrinsic(name, ("gfx1250",), (32,), _constants(rows, block > 0), work, make))
    return {i.name: i for i in found}


INTRINSICS: dict[str, core.Intrinsic] = _intrinsics()
