"""Conversions to and from the 8-, 6- and 4-bit floats: names, signatures, and the chips that have them.

``fp8`` and ``bf8`` are in the chip's own flavour: FNUZ on gfx942, OCP on gfx950, gfx12 and gfx1250.  ``fp6`` is e2m3,
``bf6`` e3m2, ``fp4`` e2m1.  Scaled forms take the power of two of their f32 scale: they multiply by it on the way up
and divide on the way down.  ``sr`` forms round up or down at random, with the bits of one more operand.

LLVM selects many scaled forms on gfx90a and gfx942 too; the manual has them from gfx950 on, and so does this table.

``cvt_scale_pk*`` of gfx1250 multiply by an E8M0 byte that is laid out as the scales of a WMMA: lane ``L`` takes it from
the scale word of lane ``L % 16 + 16*half``.  Their last operand selects it.  6-bit and 4-bit codes: 0 and 4 (``half``
1), 2 and 6 are blocks of 32, lanes 0 to 15 take byte 0 (2 with selectors 2 and 6) and lanes 16 to 31 the byte after it;
1 and 5 are blocks of 16, bytes 0 and 2.  8-bit codes: 0, 2, 4, 6 are bytes 0 to 3 of the lower half, 10, 12, 14 bytes
1 to 3 of the upper, the same for all lanes.  Other selectors are refused: reserved, or in doubt.  Whole waves only.

``e5m3`` has no sign (numbers lose theirs), exponent bias 15 and one NaN, code 255; no element type names it.

The forms of gfx1250 rest on compilers and on AMD's public emulator of that chip; they have never met silicon.

Source: CDNA3 ISA manual, V_CVT_*FP8*; CDNA4 ISA manual, 7.3; LLVM IntrinsicsAMDGPU (signatures); MLIR,
``amdgpu.scaled_ext_packed_matrix`` (selectors).
"""

from __future__ import annotations

from ...errors import AtomError, TargetError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...target import Target

_FP8 = ("gfx942", "gfx950", "gfx1200", "gfx1201", "gfx1250")
_950, _1250 = ("gfx950",), ("gfx1250",)
_WIDE = {"f32": "float", "f16": "half", "bf16": "bfloat"}
#: Small format, codes in one conversion, and the LLVM type they are packed in.
_PACKS_1250 = (
    ("fp8", 8, "<2 x i32>"), ("bf8", 8, "<2 x i32>"), ("fp4", 8, "i32"), ("fp6", 16, "<3 x i32>"),
    ("bf6", 16, "<3 x i32>"),
)  # fmt: skip
#: Formats whose bits differ between chips: element by (short name, flavour).
FLAVOURS = {
    ("fp8", "fnuz"): "f8E4M3FNUZ", ("bf8", "fnuz"): "f8E5M2FNUZ", ("fp8", "ocp"): "f8E4M3FN", ("bf8", "ocp"): "f8E5M2",
}  # fmt: skip


class Conversion:
    """One conversion.

    Attributes:
        name: Intrinsic without ``llvm.amdgcn.``.
        result: LLVM type of the result, as text.
        args: LLVM types of the arguments, in order.
        imms: Positions of constants, with the legal values.
        chips: Processors that have it.
        small: Short name of the small format; empty where there is none.
    """

    __slots__ = ("args", "chips", "imms", "name", "result", "small")

    def __init__(
        self,
        name: str,
        result: str,
        args: str,
        chips: tuple[str, ...],
        imms: dict[int, int | tuple[int, ...]] | None = None,
        small: str = "",
    ) -> None:
        self.name, self.result, self.chips, self.small = name, result, chips, small
        self.args = args.split("; ")
        self.imms = {i: tuple(range(x + 1)) if isinstance(x, int) else x for i, x in (imms or {}).items()}

    @property
    def crosses_lanes(self) -> bool:
        """Whether a lane reads another lane's operand, so that equal operands may give different results."""
        return self.name.startswith("cvt.scale.")

    @property
    def python_name(self) -> str:
        """The name as an author writes it: ``cvt_pk_fp8_f32``."""
        return self.name.replace(".", "_")

    def check_target(self, target: Target) -> None:
        """Checks that the target has the conversion.

        Raises:
            TargetError: It has not.
        """
        if target.processor not in self.chips:
            raise TargetError(
                f"{target.processor} has no {self.python_name}", fix=f"it exists on {', '.join(self.chips)}"
            )

    def check_element(self, element: str, target: Target) -> None:
        """Checks that small data of an element type is what the target's instruction means.

        Raises:
            AtomError: It is another format, or the other flavour of an 8-bit float.
        """
        flavour = target.chip.fp8 or ""
        held = {"fp6": "f6E2M3FN", "bf6": "f6E3M2FN", "fp4": "f4E2M1FN"}.get(self.small)
        held = FLAVOURS.get((self.small, flavour), held)
        if self.small == "e5m3" or held is None:
            what = "unsigned e5m3" if self.small == "e5m3" else "no small floats"
            raise AtomError(
                f"{self.python_name} on {target.processor} works on {what}, not on {element}",
                fix="leave out the element: none names this data",
            )
        if element != held:
            raise AtomError(
                f"{self.python_name} on {target.processor} works on {held}, not on {element}",
                fix=f"pass {held} data; 8-bit floats of the other flavour convert on the host, or through bits by hand",
            )


def _plain() -> list[Conversion]:
    rows = []
    for s in ("fp8", "bf8"):
        rows += [
            Conversion(f"cvt.pk.{s}.f32", "i32", "float; float; i32; i1", _FP8, {3: 1}, s),
            Conversion(f"cvt.sr.{s}.f32", "i32", "float; i32; i32; i32", _FP8, {3: 3}, s),
            Conversion(f"cvt.pk.f32.{s}", "<2 x float>", "i32; i1", _FP8, {1: 1}, s),
            Conversion(f"cvt.f32.{s}", "float", "i32; i32", _FP8, {1: 3}, s),
            Conversion(f"cvt.f16.{s}", "half", "i32; i32", _1250, {1: 3}, s),
            Conversion(f"cvt.pk.f16.{s}", "<2 x half>", "i16", _1250, {}, s),
            Conversion(f"cvt.pk.{s}.f16", "i16", "<2 x half>", _1250, {}, s),
            Conversion(f"cvt.sr.{s}.f16", "i32", "half; i32; i32; i32", _1250, {3: 3}, s),
        ]
    rows += [
        Conversion("cvt.sr.bf16.f32", "<2 x bfloat>", "<2 x bfloat>; float; i32; i1", _950, {3: 1}),
        Conversion("cvt.sr.f16.f32", "<2 x half>", "<2 x half>; float; i32; i1", _950, {3: 1}),
    ]
    return rows


def _scaled_950() -> list[Conversion]:
    pre, rows = "cvt.scalef32", []
    for s in ("fp8", "bf8"):
        rows += [
            Conversion(f"{pre}.f32.{s}", "float", "i32; float; i32", _950, {2: 3}, s),
            Conversion(f"{pre}.f16.{s}", "<2 x half>", "<2 x half>; i32; float; i32; i1", _950, {3: 3, 4: 1}, s),
        ]
        for w, t in _WIDE.items():
            pair = "float; float" if w == "f32" else f"<2 x {t}>"
            last = pair.count(";") + 3
            rows += [
                Conversion(f"{pre}.pk.{w}.{s}", f"<2 x {t}>", "i32; float; i1", _950, {2: 1}, s),
                Conversion(f"{pre}.pk.{s}.{w}", "<2 x i16>", f"<2 x i16>; {pair}; float; i1", _950, {last: 1}, s),
                Conversion(f"{pre}.sr.{s}.{w}", "i32", f"i32; {t}; i32; float; i32", _950, {4: 3}, s),
            ]
    for w, t in _WIDE.items():
        pair = "float; float" if w == "f32" else f"<2 x {t}>"
        last = pair.count(";") + 3
        rows += [
            Conversion(f"{pre}.pk.{w}.fp4", f"<2 x {t}>", "i32; float; i32", _950, {2: 3}, "fp4"),
            Conversion(f"{pre}.pk.fp4.{w}", "i32", f"i32; {pair}; float; i32", _950, {last: 3}, "fp4"),
            Conversion(f"{pre}.sr.pk.fp4.{w}", "i32", f"i32; <2 x {t}>; i32; float; i32", _950, {4: 3}, "fp4"),
        ]
        for s in ("fp6", "bf6"):
            rows += [
                Conversion(f"{pre}.pk32.{w}.{s}", f"<32 x {t}>", "<6 x i32>; float", _950, {}, s),
                Conversion(f"{pre}.sr.pk32.{s}.{w}", "<6 x i32>", f"<32 x {t}>; i32; float", _950, {}, s),
            ]
            if w == "f32":
                args = "<16 x float>; <16 x float>; float"
                rows.append(Conversion(f"{pre}.2xpk16.{s}.f32", "<6 x i32>", args, _950, {}, s))
            else:
                rows.append(Conversion(f"{pre}.pk32.{s}.{w}", "<6 x i32>", f"<32 x {t}>; float", _950, {}, s))
    return rows


def _scaled_1250() -> list[Conversion]:
    pre, rows = "cvt.scalef32", []
    for s, count, packed in _PACKS_1250:
        for w, t in _WIDE.items():
            name, wide = f"pk{count}.{s}.{w}", f"<{count} x {t}>"
            rows += [
                Conversion(f"{pre}.{name}", packed, f"{wide}; float", _1250, {}, s),
                Conversion(f"{pre}.sr.{name}", packed, f"{wide}; i32; float", _1250, {}, s),
            ]
    return rows


def _more_1250() -> list[Conversion]:
    rows = [
        Conversion("cvt.f32.fp8.e5m3", "float", "i32; i32", _1250, {1: 3}, "e5m3"),
        Conversion("cvt.pk.fp8.f32.e5m3", "i32", "float; float; i32; i1", _1250, {3: 1}, "e5m3"),
        Conversion("cvt.sr.fp8.f32.e5m3", "i32", "float; i32; i32; i32", _1250, {3: 3}, "e5m3"),
        Conversion("cvt.sr.pk.bf16.f32", "<2 x bfloat>", "float; float; i32", _1250),
        Conversion("cvt.sr.pk.f16.f32", "<2 x half>", "float; float; i32", _1250),
    ]
    for w, t in _WIDE.items():
        for s, count, packed in _PACKS_1250:
            selectors = (0, 2, 4, 6, 10, 12, 14) if s in ("fp8", "bf8") else (0, 1, 2, 4, 5, 6)
            name = f"cvt.scale.pk{count}.{w}.{s}"
            rows.append(Conversion(name, f"<{count} x {t}>", f"{packed}; i32; i32", _1250, {2: selectors}, s))
    return rows


ROWS = {row.python_name: row for row in (*_plain(), *_scaled_950(), *_scaled_1250(), *_more_1250())}


def find(name: str) -> Conversion:
    """The conversion of a name, ``cvt_pk_fp8_f32`` or with dots.

    Raises:
        AtomError: There is none; the fix names relatives.
    """
    found = ROWS.get(name.replace(".", "_"))
    if found is None:
        words = set(name.replace(".", "_").split("_")[1:])
        near = [row for row in ROWS if words and words <= set(row.split("_"))] or [
            row for row in ROWS if name.rpartition("_")[2] in row.split("_")
        ]
        raise AtomError(f"no conversion {name}", fix=f"for instance: {', '.join((near or list(ROWS))[:8])}")
    return found
