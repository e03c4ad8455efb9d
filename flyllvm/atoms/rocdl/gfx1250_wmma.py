"""``gfx1250.wmma``: the dense matrix instructions of gfx1250, in waves of 32 lanes.

``fly_rocdl.gfx1250.wmma<16x16x32, (f16, f16) -> f32>``.

K goes round the two lane halves in chunks: of 2 values for f32, of 32 for operands of 6 and 4 bits, of 8 otherwise.
Accumulators of all widths have row ``8*(t/16) + v`` at value ``v``.

Sources disagree on whether the unscaled K = 128 rows of 8-bit floats go in chunks of 8 or 16; unscaled, that is a
question of rounding order alone.

6-bit and 4-bit operands without scales are one instruction for all pairs; an 8-bit operand with a narrower one is
left out, because public sources disagree on the K order of that mix (use ``gfx1250.wmma_scale`` with scales of 127).
The f16 rows of 8-bit floats with K = 64 are in no published register map: their layouts are those of the f32 rows.
The 32x16x128 row rests on one other compiler.

``fly_rocdl.gfx1250.wmma<16x16x32, (bf16, bf16) -> f32, result = bf16>`` adds an f32 C and rounds D to bf16.

Source: LLVM IntrinsicsAMDGPU and its scheduling model (cycles are from the model, not measured); layouts published by
compilers and libraries.  None of it is from an ISA manual.
"""

from __future__ import annotations

from ...ir.protocols import register_payload
from ...layout import Layout
from ..rows import MmaRow, MmaTable
from .wmma import FP8, Wmma

RESULT = Layout(((16, 2), 8), ((16, 8), 1))
RESULT_32 = Layout(((16, 2), (8, 2)), ((32, 8), (1, 16)))
INPUT_32 = Layout(((16, 2), (32, 2, 2)), ((1, 1024), (32, 2048, 16)))
#: Dwords of a lane for 16 rows and K = 128.
DWORDS = {"f8E4M3FN": 16, "f8E5M2": 16, "f6E2M3FN": 12, "f6E3M2FN": 12, "f4E2M1FN": 8}
NARROW = ("f6E2M3FN", "f6E3M2FN", "f4E2M1FN")
# K, A = B, accumulator, instruction after v_wmma_, type and its name of A and B, of C, cycles (0: unknown).
_TABLE = (
    (4, "f32", "f32", "f32_16x16x4_f32", "<2 x float>", "v2f32", "<8 x float>", "v8f32", 0),
    (32, "f16", "f32", "f32_16x16x32_f16", "<16 x half>", "v16f16", "<8 x float>", "v8f32", 8),
    (32, "bf16", "f32", "f32_16x16x32_bf16", "<16 x bfloat>", "v16bf16", "<8 x float>", "v8f32", 8),
    (32, "f16", "f16", "f16_16x16x32_f16", "<16 x half>", "v16f16", "<8 x half>", "v8f16", 8),
    (32, "bf16", "bf16", "bf16_16x16x32_bf16", "<16 x bfloat>", "v16bf16", "<8 x bfloat>", "v8bf16", 8),
    (64, "i8", "i32", "i32_16x16x64_iu8", "<8 x i32>", "v8i32", "<8 x i32>", "v8i32", 16),
)


def chunked(k: int, chunk: int) -> Layout:
    """A or B of 16 rows: chunks of ``chunk`` values of K go round the two lane halves."""
    rounds = k // (2 * chunk)
    if rounds == 1:
        return Layout(((16, 2), chunk), ((1, 16 * chunk), 16))
    return Layout(((16, 2), (chunk, rounds)), ((1, 16 * chunk), (16, 32 * chunk)))


def _row(
    shape: tuple[int, int, int],
    elements: tuple[str, str, str],
    instruction: str,
    suffix: str,
    carriers: tuple[str, str, str],
    layouts: tuple[Layout, Layout, Layout],
    cycles: int,
    result: str = "",
) -> MmaRow:
    return MmaRow(
        "gfx1250.wmma",
        shape,
        1,
        elements,
        f"llvm.amdgcn.wmma.{instruction.replace('_', '.')}.{suffix}",
        carriers,
        layouts,
        {"gfx1250": f"v_wmma_{instruction}"},
        {"gfx1250": cycles} if cycles else {},
        wave=32,
        variant=f"result = {result}" if result else "",
        result=result,
    )


def _rows() -> list[MmaRow]:
    rows = []
    for k, element, acc, instruction, carrier, short, out, out_short, cycles in _TABLE:
        inputs = chunked(k, 2 if element == "f32" else 8)
        suffix = f"{out_short}.{short}"
        layouts = (inputs, inputs, RESULT)
        elements = (element, element, acc)
        rows.append(_row((16, 16, k), elements, instruction, suffix, (carrier, carrier, out), layouts, cycles))
    inputs, bf16 = chunked(32, 8), "<16 x bfloat>"
    elements, carriers = ("bf16", "bf16", "f32"), (bf16, bf16, "<8 x float>")
    name, suffix = "bf16f32_16x16x32_bf16", "v8bf16.v16bf16.v8f32"
    rows.append(_row((16, 16, 32), elements, name, suffix, carriers, (inputs, inputs, RESULT), 0, "bf16"))
    for acc, out in (("f32", "float"), ("f16", "half")):
        for k in (64, 128):
            for a, a_name in FP8.items():
                for b, b_name in FP8.items():
                    inputs = chunked(k, 8)
                    name, suffix = f"{acc}_16x16x{k}_{a}_{b}", f"v8{acc}.v{k // 8}i32"
                    carriers = (f"<{k // 8} x i32>", f"<{k // 8} x i32>", f"<8 x {out}>")
                    layouts = (inputs, inputs, RESULT)
                    cycles = k // 16 if (acc, k) != ("f16", 64) else 0
                    rows.append(_row((16, 16, k), (a_name, b_name, acc), name, suffix, carriers, layouts, cycles))
    narrow = chunked(128, 32)
    for a in NARROW:
        for b in NARROW:
            suffix = f"v8f32.v{DWORDS[a]}i32.v{DWORDS[b]}i32"
            carriers = (f"<{DWORDS[a]} x i32>", f"<{DWORDS[b]} x i32>", "<8 x float>")
            layouts = (narrow, narrow, RESULT)
            rows.append(_row((16, 16, 128), (a, b, "f32"), "f32_16x16x128_f8f6f4", suffix, carriers, layouts, 0))
    f4 = "f4E2M1FN"
    carriers = ("<16 x i32>", "<8 x i32>", "<16 x float>")
    layouts = (INPUT_32, narrow, RESULT_32)
    rows.append(_row((32, 16, 128), (f4, f4, "f32"), "f32_32x16x128_f4", "v16f32.v16i32.v8i32", carriers, layouts, 0))
    return rows


TABLE = MmaTable("gfx1250.wmma", _rows())


class WmmaGfx1250(Wmma):
    """A WMMA of gfx1250; see the module for the spelling."""

    __slots__ = ()

    mnemonic = "fly_rocdl.gfx1250.wmma"
    table = TABLE


def atoms() -> list[WmmaGfx1250]:
    """One atom for each row."""
    return [WmmaGfx1250(row) for row in TABLE.rows]


register_payload(WmmaGfx1250.mnemonic, WmmaGfx1250.parse)
