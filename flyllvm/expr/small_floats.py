"""Conversions of 8-, 6- and 4-bit floats through the target's own instructions.

Which flavour a chip converts is its hardware's: FNUZ on gfx942, OCP on gfx950, gfx12 and gfx1250.
"""

from __future__ import annotations

from ..errors import TargetError
from ..ir import types as t

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..ir.builder import Builder
    from ..ir.core import Value
    from .number import Numeric

#: (name in the instruction, flavour, largest finite number) of the 8-bit types.
_FP8 = {
    "f8E4M3FN": ("fp8", "ocp", 448.0),
    "f8E5M2": ("bf8", "ocp", 57344.0),
    "f8E4M3FNUZ": ("fp8", "fnuz", 240.0),
    "f8E5M2FNUZ": ("bf8", "fnuz", 57344.0),
}
#: (name in the instruction, largest finite number) of the narrower types.
_NARROW = {"f6E2M3FN": ("fp6", 7.5), "f6E3M2FN": ("bf6", 28.0), "f4E2M1FN": ("fp4", 6.0)}
_CHIPS = {"ocp": "gfx950, gfx1200, gfx1201 and gfx1250", "fnuz": "gfx942"}


def largest(cls: type[Numeric]) -> float | None:
    """The largest finite number of a small float type that can be converted to."""
    found = _FP8.get(cls.ir.text) or _NARROW.get(cls.ir.text)
    return found[-1] if found is not None else None


def _refuse(b: Builder, source: type[Numeric], target: type[Numeric], chips: str) -> TargetError:
    return TargetError(
        f"{b.target.processor} has no conversion from {source} to {target}",
        b.location(),
        f"it exists on {chips}; on this chip keep the bytes, or convert on the host"
        if chips
        else "convert through Float32, Float16 or BFloat16",
    )


def convert_small(b: Builder, v: Value, source: type[Numeric], target: type[Numeric], saturate: bool = False) -> Value:
    """A scalar or vector to or from a small float, through f32 where the instruction has no other form.

    Raises:
        TargetError: The chip has no instruction for it.
    """
    small_source = isinstance(source.ir, t.FloatType) and source.ir.is_small
    small_target = isinstance(target.ir, t.FloatType) and target.ir.is_small
    if (small_source and small_target) or source.width == 64 or target.width == 64:
        raise _refuse(b, source, target, "")
    if small_source:
        wide = _widened(b, v, source, target)
        from .number import BY_IR

        return wide if target.ir is t.F32 else _through(b, wide, BY_IR["f32"], target)
    from .number import BY_IR

    wide = v if source.ir is t.F32 else _through(b, v, source, BY_IR["f32"])
    return _narrowed(b, _clamped(b, wide, target) if saturate else wide, source, target)


def _through(b: Builder, v: Value, source: type[Numeric], target: type[Numeric]) -> Value:
    from .casts import cast

    return cast(v, source, target)


def _clamped(b: Builder, v: Value, target: type[Numeric]) -> Value:
    """Inside the target's finite range; NaN stays."""
    most = largest(target)
    if most is None:
        return v
    inside = b.binary("arith.minnumf", v, b.constant(most, v.type))
    inside = b.binary("arith.maxnumf", inside, b.constant(-most, v.type))
    return b.select(b.cmpf("uno", v, v), v, inside)


def _fp8_name(b: Builder, small: type[Numeric], source: type[Numeric], target: type[Numeric]) -> str:
    found = _FP8.get(small.ir.text)
    if found is None:
        raise _refuse(b, source, target, "no chip that flyllvm knows, as a plain conversion")
    name, flavour, _ = found
    if b.target.chip.fp8 != flavour:
        raise _refuse(b, source, target, _CHIPS[flavour])
    return name


def _words(b: Builder, v: Value, per_word: int) -> list[Value]:
    """The bits of a small-float scalar or vector as i32 words, the last one padded with zeros."""
    count, bits = t.count_of(v.type), t.scalar_of(v.type).bits
    elem = t.int_type(bits)
    whole = b.bitcast(v, t.value_type(count, elem) if count > 1 else elem)
    if isinstance(v.type, t.VectorType) and count == 1:
        whole = b.bitcast(v, t.VectorType(1, elem))
    short = -count % per_word
    joined = b.concat([whole, b.constant(0, t.value_type(short, elem))]) if short else whole
    return [b.bitcast(b.vector_slice(joined, i, per_word), t.I32) for i in range(0, t.count_of(joined.type), per_word)]


def _block(b: Builder, small: type[Numeric], source: type[Numeric], target: type[Numeric]) -> int:
    """Elements of the chip's conversions of whole blocks, which 6-bit floats and gfx1250 have; 0 for other forms."""
    if small.ir.text not in _NARROW:
        return 0
    blocks = {"gfx950": 32 if small.width == 6 else 0, "gfx1250": 16 if small.width == 6 else 8}
    if b.target.processor not in blocks:
        raise _refuse(b, source, target, "gfx950 and gfx1250")
    return blocks[b.target.processor]


def _padded(b: Builder, v: Value, elem: t.ScalarType, multiple: int) -> Value:
    """The elements of a scalar or vector as ``elem`` of the same width, and zeros up to a multiple."""
    count = t.count_of(v.type)
    whole = b.bitcast(v, t.VectorType(count, elem)) if isinstance(v.type, t.VectorType) else v
    if not isinstance(whole.type, t.VectorType):
        whole = b.broadcast(b.bitcast(v, elem), 1)
    short = -count % multiple
    zero = b.constant(0.0 if isinstance(elem, t.FloatType) else 0, t.VectorType(short, elem)) if short else None
    return whole if zero is None else b.concat([whole, zero])


def _unpacked(b: Builder, v: Value, source: type[Numeric], per_call: int) -> Value:
    name, count = _NARROW[source.ir.text][0], t.count_of(v.type)
    codes = _padded(b, v, t.int_type(source.width), per_call)
    words, wide = source.width * per_call // 32, t.VectorType(per_call, t.F32)
    made: list[Value] = []
    for start in range(0, t.count_of(codes.type), per_call):
        packed = b.bitcast(b.vector_slice(codes, start, per_call), t.VectorType(words, t.I32) if words > 1 else t.I32)
        if b.target.processor == "gfx950":
            call = b.intrinsic(
                f"llvm.amdgcn.cvt.scalef32.pk32.f32.{name}", wide, [packed, b.constant(1.0, t.F32)], pure=True
            )
        else:  # all bytes are the scale 2**0, so it does not matter which one a lane takes
            ones = b.constant(0x7F7F7F7F, t.I32)
            call = b.intrinsic(f"llvm.amdgcn.cvt.scale.pk{per_call}.f32.{name}", wide, [packed, ones, 0], pure=True)
        made += [] if call is None else [call]
    whole = b.vector_slice(b.concat(made), 0, count)
    return whole if count > 1 else _shaped(b, b.extract(whole, 0), v)


def _packed(b: Builder, v: Value, target: type[Numeric], per_call: int) -> Value:
    name, count = _NARROW[target.ir.text][0], t.count_of(v.type)
    values, one = _padded(b, v, t.F32, per_call), b.constant(1.0, t.F32)
    words = target.width * per_call // 32
    held = t.VectorType(words, t.I32) if words > 1 else t.I32
    made: list[Value] = []
    for start in range(0, t.count_of(values.type), per_call):
        block = b.vector_slice(values, start, per_call)
        if b.target.processor == "gfx950":  # the instruction interleaves its two halves
            even, odd = (b.concat([b.extract(block, i) for i in range(first, per_call, 2)]) for first in (0, 1))
            call = b.intrinsic(f"llvm.amdgcn.cvt.scalef32.2xpk16.{name}.f32", held, [even, odd, one], pure=True)
        else:
            call = b.intrinsic(f"llvm.amdgcn.cvt.scalef32.pk{per_call}.{name}.f32", held, [block, one], pure=True)
        made += [] if call is None else [b.bitcast(call, t.VectorType(per_call, target.ir))]
    whole = b.vector_slice(b.concat(made), 0, count)
    return whole if count > 1 else _shaped(b, b.extract(whole, 0), v)


def _widened(b: Builder, v: Value, source: type[Numeric], target: type[Numeric]) -> Value:
    count = t.count_of(v.type)
    if source.ir is t.F8E8M0FNU:
        return _power_of_two(b, v)
    if (per_call := _block(b, source, source, target)) > 0:
        return _unpacked(b, v, source, per_call)
    pair = t.VectorType(2, t.F32)
    made: list[Value | None]
    if source.ir is t.F4E2M1FN:
        one = b.constant(1.0, t.F32)
        made = [
            b.intrinsic("llvm.amdgcn.cvt.scalef32.pk.f32.fp4", pair, [w, one, i], pure=True)
            for w in _words(b, v, 8)
            for i in range(4)
        ]
    else:
        name = f"llvm.amdgcn.cvt.pk.f32.{_fp8_name(b, source, source, target)}"
        made = [b.intrinsic(name, pair, [w, i], 1, pure=True) for w in _words(b, v, 4) for i in (0, 1)]
    needed = [m for m in made[: -(-count // 2)] if m is not None]
    whole = b.vector_slice(b.concat(needed), 0, count)
    return whole if isinstance(whole.type, type(v.type)) or count > 1 else _shaped(b, whole, v)


def _shaped(b: Builder, whole: Value, like: Value) -> Value:
    """A lone element as a vector of one where the operand was one."""
    return b.broadcast(whole, 1) if isinstance(like.type, t.VectorType) else whole


def _power_of_two(b: Builder, v: Value) -> Value:
    """``2**(x - 127)``: the exponent field of an f32; 0 is a denormal, 255 is NaN."""
    wide = t.like(v.type, t.I32)
    x = b.cast("arith.extui", b.bitcast(v, t.like(v.type, t.I8)), t.I32)
    bits = b.binary("arith.shli", x, b.constant(23, wide))
    bits = b.select(b.cmpi("eq", x, b.constant(0, wide)), b.constant(0x00400000, wide), bits)
    bits = b.select(b.cmpi("eq", x, b.constant(255, wide)), b.constant(0x7FC00000, wide), bits)
    return b.bitcast(bits, t.like(v.type, t.F32))


def _narrowed(b: Builder, v: Value, source: type[Numeric], target: type[Numeric]) -> Value:
    count = t.count_of(v.type)
    if (per_call := _block(b, target, source, target)) > 0:
        return _packed(b, v, target, per_call)
    if target.ir is t.F4E2M1FN:
        per_word, scale = 8, [b.constant(1.0, t.F32)]
        name, bits = "llvm.amdgcn.cvt.scalef32.pk.fp4.f32", 32
    else:
        name = f"llvm.amdgcn.cvt.pk.{_fp8_name(b, target, source, target)}.f32"
        per_word, scale, bits = 4, [], 1
    zero = b.constant(0.0, t.F32)
    elements = [b.extract(v, i) for i in range(count)] + [zero] * (-count % per_word)
    words: list[Value] = []
    for start in range(0, len(elements), per_word):
        word: Value | None = b.constant(0, t.I32)
        for i in range(0, per_word, 2):
            if start + i >= count or word is None:
                break
            two = elements[start + i : start + i + 2]
            operands: list[Value | int] = [word, *two, *scale, i // 2] if scale else [*two, word, i // 2]
            word = b.intrinsic(name, t.I32, operands, bits, pure=True)
        if word is not None:
            words.append(b.bitcast(word, t.VectorType(per_word, target.ir)))
    whole = b.vector_slice(b.concat(words), 0, count)
    return whole if count > 1 else _shaped(b, b.extract(whole, 0), v)
