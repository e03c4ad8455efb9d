"""Dense WMMA of gfx11, gfx12 and gfx1250: 16x16 tiles in waves of 32 lanes (64 too on gfx11 and gfx12).

Lane formulas; ``r`` is the row of A or the column of B, W the wave size:

- gfx11: A and B are held whole by every group of 16 lanes (2 copies in wave32, 4 in wave64): lane ``r + 16*copy``,
  value ``k``.  C and D: lane ``n + 16*(m % (W/16))``, value ``m // (W/16)``.  A 16-bit accumulator uses one half of
  each 32-bit register, chosen by opsel.
- gfx12, wave32: 16-bit elements in chunks of 4, lane ``r + 16*(k // 4 % 2)``, value ``4*(k // 8) + k % 4``; 8-bit and
  4-bit elements in chunks of 8.  C and D: lane ``n + 16*(m // 8)``, value ``m % 8``.
- gfx12, wave64: 16-bit lane ``r + 16*(k // 4)``, value ``k % 4``; 8-bit lane ``r + 16*(k // 8) + 32*(k // 4 % 2)``,
  value ``k % 4``.  C and D: lane ``n + 16*(m // 8) + 32*(m // 4 % 2)``, value ``m % 4``.
- gfx1250 (wave32): chunks of 8, lane ``r + 16*(k // 8 % 2)``, value ``8*(k // 16) + k % 8``; f32 in chunks of 2.  C
  and D as gfx12 in wave32, for every width of accumulator.

An unscaled product does not show a K order common to A and B; transposing loads and raw fragments do.

Without a published register map, so by family rule: the 8-bit and 4-bit integer rows of gfx12 (taken as the fp8 rows;
the 4-bit K=16 row of wave64 reads the lower 32 lanes), the f16 rows of gfx1250 with K = 64, wmma.bf16f32.

16-bit accumulators are rounded once per instruction here; the rounding inside the hardware is not published.

Source: RDNA3 and RDNA4 ISA manuals, WMMA; AMD matrix instruction calculator 1.3 (opsel, replication); LLVM
IntrinsicsAMDGPU (arguments, ``.tied``).
"""

from __future__ import annotations

from ..errors import SimError
from ..target import Target
from . import matrix_core as core
from .matrix_element import element_for
from .matrix_fragment import Fetch, Index, Store

_GFX11 = ("gfx1100",)
_GFX12 = ("gfx1200", "gfx1201")
_GFX1250 = ("gfx1250",)
_BITS = {"f32": 32, "f16": 16, "bf16": 16, "fp8": 8, "bf8": 8, "iu8": 8, "iu4": 4}

# Constant arguments by call form, as position to name.
_FORMS: dict[str, dict[int, str]] = {
    "plain": {},
    "opsel": {3: "opsel"},
    "integer": {0: "signed A", 2: "signed B", 5: "clamp"},
    "modified": {0: "neg A", 2: "neg B", 4: "modifier of C", 6: "reuse A", 7: "reuse B"},
    "fp8": {2: "modifier of C", 4: "reuse A", 5: "reuse B"},
    "integer1250": {0: "signed A", 2: "signed B", 5: "reuse A", 6: "reuse B", 7: "clamp"},
}


class WmmaRow:
    """One WMMA instruction of one or more generations.

    Attributes:
        name: Intrinsic name without ``llvm.amdgcn.`` and without type suffixes.
        k: Depth of the 16x16 tile.
        a, b: Element names; ``iu8`` and ``iu4`` are signed or unsigned by a constant argument.
        acc: Element name of the accumulator.
        result: Element name of the result.
        targets: Processors that have the instruction.
        form: Key into the table of constant arguments.
        tied: Whether the unused halves of a gfx11 16-bit accumulator keep their bits.
    """

    __slots__ = ("a", "acc", "b", "form", "k", "name", "result", "targets", "tied")

    def __init__(
        self,
        name: str,
        k: int,
        a: str,
        acc: str,
        targets: tuple[str, ...],
        form: str,
        *,
        b: str | None = None,
        result: str | None = None,
        tied: bool = False,
    ) -> None:
        self.name = f"wmma.{name}"
        self.k = k
        self.a = a
        self.b = b or a
        self.acc = acc
        self.result = result or acc
        self.targets = targets
        self.form = form
        self.tied = tied


def _rows() -> dict[str, WmmaRow]:
    both = _GFX11 + _GFX12
    rows = [
        WmmaRow("f32.16x16x16.f16", 16, "f16", "f32", both, "plain"),
        WmmaRow("f32.16x16x16.bf16", 16, "bf16", "f32", both, "plain"),
        WmmaRow("f16.16x16x16.f16", 16, "f16", "f16", both, "opsel"),
        WmmaRow("bf16.16x16x16.bf16", 16, "bf16", "bf16", both, "opsel"),
        WmmaRow("f16.16x16x16.f16.tied", 16, "f16", "f16", _GFX11, "opsel", tied=True),
        WmmaRow("bf16.16x16x16.bf16.tied", 16, "bf16", "bf16", _GFX11, "opsel", tied=True),
        WmmaRow("i32.16x16x16.iu8", 16, "iu8", "i32", both, "integer"),
        WmmaRow("i32.16x16x16.iu4", 16, "iu4", "i32", both, "integer"),
        WmmaRow("i32.16x16x32.iu4", 32, "iu4", "i32", _GFX12, "integer"),
        WmmaRow("f32.16x16x4.f32", 4, "f32", "f32", _GFX1250, "modified"),
        WmmaRow("f32.16x16x32.f16", 32, "f16", "f32", _GFX1250, "modified"),
        WmmaRow("f32.16x16x32.bf16", 32, "bf16", "f32", _GFX1250, "modified"),
        WmmaRow("f16.16x16x32.f16", 32, "f16", "f16", _GFX1250, "modified"),
        WmmaRow("bf16.16x16x32.bf16", 32, "bf16", "bf16", _GFX1250, "modified"),
        WmmaRow("bf16f32.16x16x32.bf16", 32, "bf16", "f32", _GFX1250, "modified", result="bf16"),
        WmmaRow("i32.16x16x64.iu8", 64, "iu8", "i32", _GFX1250, "integer1250"),
    ]
    for a in ("fp8", "bf8"):
        for b in ("fp8", "bf8"):
            rows.append(WmmaRow(f"f32.16x16x16.{a}.{b}", 16, a, "f32", _GFX12, "plain", b=b))
            for acc in ("f32", "f16"):
                for k in (64, 128):
                    rows.append(WmmaRow(f"{acc}.16x16x{k}.{a}.{b}", k, a, acc, _GFX1250, "fp8", b=b))
    return {row.name: row for row in rows}


ROWS: dict[str, WmmaRow] = _rows()


def input_index(k: int, bits: int, processor: str, wave: int) -> tuple[Index, int, int]:
    """Where A[m][k] sits (and B[k][n] as ``[n][k]``): flat positions, values per lane, copies.

    Shape: ``(16, K)``.
    """
    row, depth = core.grid(16, k)
    if processor in _GFX11:
        return row * k + depth, k, wave // 16
    if processor in _GFX1250:
        chunk = 2 if bits == 32 else 8
        return core.chunked(row, depth, chunk, 16, 2, k // 2), k // 2, 1
    return gfx12_input(k, bits, wave)


def gfx12_input(k: int, bits: int, wave: int) -> tuple[Index, int, int]:
    """`input_index` of gfx1200 and gfx1201; sparse A and B use it for their own depths too."""
    row, depth = core.grid(16, k)
    if wave == 32:
        chunk = 4 if bits == 16 and k == 16 else 8
        return core.chunked(row, depth, chunk, 16, 2, k // 2), k // 2, 1
    if bits == 16:
        return core.chunked(row, depth, 4, 16, 4, k // 4), k // 4, 1
    if bits == 8:
        lane = row + 16 * (depth // 8) + 32 * (depth // 4 % 2)
        return lane * 4 + depth % 4, 4, 1
    if k == 16:  # 16 rows of 16 four-bit values fill 32 lanes
        return (row + 16 * (depth // 8)) * 8 + depth % 8, 8, 1
    lane = row + 16 * (depth // 16) + 32 * (depth // 8 % 2)
    return lane * 8 + depth % 8, 8, 1


def output_index(processor: str, wave: int) -> tuple[Index, int]:
    """Where D[m][n] sits: flat positions and values per lane, for accumulators without unused halves.

    Shape: ``(16, 16)``.
    """
    m, n = core.grid(16, 16)
    count = 256 // wave
    if processor in _GFX11:
        rows = wave // 16
        return (n + 16 * (m % rows)) * count + m // rows, count
    lane = n + 16 * (m // 8)
    if wave == 64:
        lane = lane + 32 * (m // 4 % 2)
    return lane * count + m % count, count


def element_name(name: str, signed: int) -> str:
    """The element an operand has: ``iu8`` and ``iu4`` get their sign."""
    return ("i" if signed else "u") + name[2:] if name.startswith("iu") else name


class Modifiers:
    """The constant arguments of a WMMA call, by meaning.

    Attributes:
        signed_a, signed_b: Whether integer inputs are signed.
        negate: Whether the product is negated (one of A and B is).
        c_negate, c_absolute: Modifiers of the accumulator.
        clamp: Whether integer results saturate.
        opsel: Half of each accumulator register on gfx11.
    """

    __slots__ = ("c_absolute", "c_negate", "clamp", "negate", "opsel", "signed_a", "signed_b")

    def __init__(self, name: str, form: dict[int, str], immediates: tuple[int, ...]) -> None:
        values = dict(zip(form.values(), immediates))
        for what, value in values.items():
            core.check_flag(name, what, value, 3 if what == "modifier of C" else 1)
        modifier = values.get("modifier of C", 0)
        self.signed_a = values.get("signed A", 0)
        self.signed_b = values.get("signed B", 0)
        self.negate = bool(values.get("neg A", 0) ^ values.get("neg B", 0))
        self.c_negate = bool(modifier & 1)
        self.c_absolute = bool(modifier & 2)
        self.clamp = bool(values.get("clamp", 0))
        self.opsel = values.get("opsel", 0)


def build(row: WmmaRow, immediates: tuple[int, ...], wave: int, target: Target) -> core.Product:
    """The instruction as a function of the register arrays A, B and C.

    Raises:
        SimError: A constant argument without a meaning; differing copies of A or B at a call (gfx11).
    """
    processor, flavour = target.processor, target.chip.fp8
    modifiers = Modifiers(row.name, _FORMS[row.form], immediates)
    index, count, copies = input_index(row.k, _BITS[row.a], processor, wave)
    a = element_for(element_name(row.a, modifiers.signed_a), flavour)
    b = element_for(element_name(row.b, modifiers.signed_b), flavour)
    place, per_lane = output_index(processor, wave)
    if processor in _GFX11 and row.form == "opsel":
        place, per_lane = 2 * place + modifiers.opsel, 2 * per_lane
    elif modifiers.opsel:
        raise SimError(f"{row.name}: opsel 1 on {processor}", fix="opsel 0: accumulators are packed there")
    return core.Product(
        Fetch(a, wave, count, index, replicas=copies),
        Fetch(b, wave, count, index.T, replicas=copies),
        Store(
            element_for(row.acc, flavour),
            wave,
            per_lane,
            core.inverse(place, wave * per_lane),
            negate=modifiers.c_negate,
            absolute=modifiers.c_absolute,
            clamp=modifiers.clamp,
            keep_unused=row.tied,
            result=element_for(row.result, flavour),
        ),
        negate=modifiers.negate,
    )


def _intrinsic(row: WmmaRow) -> core.Intrinsic:
    return core.Intrinsic(
        row.name,
        row.targets,
        (32,) if row.targets == _GFX1250 else (32, 64),
        _FORMS[row.form],
        2 * 16 * 16 * row.k,
        lambda immediates, wave_size, target: build(row, immediates, wave_size, target),
    )


INTRINSICS: dict[str, core.Intrinsic] = {row.name: _intrinsic(row) for row in ROWS.values()}
