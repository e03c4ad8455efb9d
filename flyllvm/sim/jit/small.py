"""Conversions to and from floats of at most 8 bits: `sim.matrix_convert` on parts.

Codes of numbers come from `sim.small_codes`, numbers of codes from the fields of the format: a code's exponent and
mantissa, moved to those of a float, are the number times a power of two, denormals too.
"""

from __future__ import annotations

from collections.abc import Callable

from .. import small_codes, types as ty
from ..ir import Inst
from ..matrix_convert import Down, DownWhole, StochasticHalf, Up
from ..matrix_convert_1250 import LaneScaled, StochasticPair
from ..numerics import SmallFloat
from . import arith, bits, cross
from .forms import recast
from .lower import Lowering
from .math import TextOps
from .parts import NotCovered, Part, bits_of, float_literal, part_types
from .text import Values

_WIDE = {"f32": ty.FLOAT, "f16": ty.HALF, "bf16": ty.BFLOAT}


def lower(b: Lowering, inst: Inst, prepared: object, operands: list[list[Part]]) -> list[Part]:
    """The parts of the result; ``operands`` are those of the register operands."""
    if isinstance(prepared, Up):
        return _up(b, prepared, operands)
    if isinstance(prepared, Down):
        return _down(b, prepared, operands)
    if isinstance(prepared, DownWhole):
        return _whole(b, inst, prepared, operands)
    if isinstance(prepared, LaneScaled):
        return _lane_scaled(b, prepared, operands)
    if isinstance(prepared, StochasticHalf):
        old, (value,), (random,) = operands
        made = b.apply(lambda v, x, r: [_sixteen(v, prepared.kind, x, r)], [value, random], [old[0].type])
        return [made[0] if i == prepared.half else p for i, p in enumerate(old)]
    if isinstance(prepared, StochasticPair):
        (first,), (second,), (random,) = operands
        (following,) = b.apply(lambda v, r: [next_random(v, r)], [random], ["i32"])
        t = part_types(inst.type)[0]
        pairs = ((first, random), (second, following))
        return [b.apply(lambda v, x, r: [_sixteen(v, prepared.kind, x, r)], [x, r], [t])[0] for x, r in pairs]
    raise NotCovered(f"@{inst.callee}")


def next_random(v: Values, word: str) -> str:
    """The next state of V_PRNG_B32."""
    top = v.op("icmp slt", "i32", word, v.const("i32", 0))
    feedback = v.select(top, "i32", v.const("i32", 197), v.const("i32", 0))
    return v.op("xor", "i32", v.op("shl", "i32", word, v.const("i32", 1)), feedback)


def _sixteen(v: Values, kind: str, value: str, random: str) -> str:
    """A float as half or bits of a bfloat, rounded stochastically: `numerics.encode_..._stochastic`."""
    if kind == "f16":
        wide = v.cast("fpext", "float", value, "double")
        done = small_codes.half_stochastic(TextOps(v), wide, v.cast("zext", "i32", random, "i64"))
        return arith.from_double(v, ty.HALF, done)
    word = v.cast("bitcast", "float", value, "i32")
    exponent = v.op("and", "i32", word, v.const("i32", 0x7F800000))
    special = v.op("icmp eq", "i32", exponent, v.const("i32", 0x7F800000))
    moved = v.op("add", "i32", word, v.op("lshr", "i32", random, v.const("i32", 16)))
    high = v.cast("trunc", "i32", v.op("lshr", "i32", moved, v.const("i32", 16)), "i16")
    return v.select(special, "i16", arith.encode_bf16(v, value), high)


# ---- codes to numbers


def decode(v: Values, fmt: SmallFloat, code: str) -> str:
    """The float of a code (i32)."""
    fields = (1 << (fmt.exponent_bits + fmt.mantissa_bits)) - 1
    size = v.op("and", "i32", code, v.const("i32", fields))
    moved = v.cast("bitcast", "i32", v.op("shl", "i32", size, v.const("i32", 23 - fmt.mantissa_bits)), "float")
    number = v.op("fmul", "float", moved, v.const("float", float_literal("float", 2.0 ** (127 - fmt.bias))))
    nan = v.const("float", float_literal("float", float("nan")))
    if fmt.specials == "ieee":
        infinity = ((1 << fmt.exponent_bits) - 1) << fmt.mantissa_bits
        is_infinite = v.op("icmp eq", "i32", size, v.const("i32", infinity))
        number = v.select(is_infinite, "float", v.const("float", float_literal("float", float("inf"))), number)
        number = v.select(v.op("icmp ugt", "i32", size, v.const("i32", infinity)), "float", nan, number)
    elif fmt.specials in ("fn", "unsigned"):
        number = v.select(v.op("icmp eq", "i32", size, v.const("i32", fields)), "float", nan, number)
    if fmt.specials == "unsigned":
        return number
    top = v.op("shl", "i32", code, v.const("i32", 32 - fmt.bits))
    sign = v.op("and", "i32", top, v.const("i32", -(1 << 31)))
    done = v.cast("bitcast", "i32", v.op("or", "i32", v.cast("bitcast", "float", number, "i32"), sign), "float")
    if fmt.specials != "fnuz":
        return done
    only = v.op("and", "i32", code, v.const("i32", (1 << fmt.bits) - 1))
    return v.select(v.op("icmp eq", "i32", only, v.const("i32", 1 << (fmt.bits - 1))), "float", nan, done)


def factor_of(v: Values, exponent: str) -> str:
    """``2**(exponent - 127)`` of a byte (i32) as double; 255 is NaN."""
    field = v.op("add", "i64", v.cast("zext", "i32", exponent, "i64"), v.const("i64", 1023 - 127))
    power = v.cast("bitcast", "i64", v.op("shl", "i64", field, v.const("i64", 52)), "double")
    nan = v.const("double", float_literal("double", float("nan")))
    return v.select(v.op("icmp eq", "i32", exponent, v.const("i32", 255)), "double", nan, power)


def _factor_of_scale(v: Values, scale: str) -> str:
    """The power of two in the exponent field of a float."""
    word = v.op("lshr", "i32", v.cast("bitcast", "float", scale, "i32"), v.const("i32", 23))
    return factor_of(v, v.op("and", "i32", word, v.const("i32", 255)))


def scale_of(b: Lowering, part: Part) -> Part:
    """The power of two that a float stands for as a scale, as double."""
    return b.apply(lambda v, s: [_factor_of_scale(v, s)], [part], ["double"])[0]


def codes_of(b: Lowering, parts: list[Part], width: int, first: int, count: int) -> list[Part]:
    """Codes ``first`` and up of a row of parts, as i32."""
    word = bits_of(parts[0].type)
    found = []
    for i in range(first, first + count):
        at, shift = divmod(i * width, word)
        source = parts[at : at + (2 if shift + width > word else 1)]

        def take(v: Values, *args: str, shift: int = shift, t: str = source[0].type) -> list[str]:
            low = v.op("lshr", f"i{word}", bits.integer_of(v, t, args[0]), v.const(f"i{word}", shift))
            if len(args) > 1:
                high = v.op("shl", f"i{word}", bits.integer_of(v, t, args[1]), v.const(f"i{word}", word - shift))
                low = v.op("or", f"i{word}", low, high)
            code = v.op("and", f"i{word}", low, v.const(f"i{word}", (1 << width) - 1))
            return [v.cast("zext" if word < 32 else "trunc", f"i{word}", code, "i32") if word != 32 else code]

        found += b.apply(take, source, ["i32"])
    return found


def _numbers(b: Lowering, up: Up, codes: list[Part], factor: Part | None) -> list[Part]:
    kind = _WIDE[up.kind]
    t = part_types(kind)[0]

    def run(v: Values, code: str, *factors: str) -> list[str]:
        number = decode(v, up.fmt, code)
        if not factors and kind is ty.FLOAT:
            return [number]
        wide = v.cast("fpext", "float", number, "double")
        return [arith.from_double(v, kind, v.op("fmul", "double", wide, factors[0]) if factors else wide)]

    return b.each(run, t, codes, *([[factor]] if factor is not None else []))


def _up(b: Lowering, up: Up, operands: list[list[Part]]) -> list[Part]:
    left = list(operands)
    factor = scale_of(b, left.pop()[0]) if up.scaled else None
    source = left[-1]
    count = up.count or len(source) * bits_of(source[0].type) // up.fmt.bits
    done = _numbers(b, up, codes_of(b, source, up.fmt.bits, up.place * up.count, count), factor)
    if up.half is None:
        return done
    return [done[0] if i == up.half else p for i, p in enumerate(left[0])]


def _lane_scaled(b: Lowering, prepared: LaneScaled, operands: list[list[Part]]) -> list[Part]:
    """Scales from other lanes: where one does not run and may have another scale, the first engine takes over."""
    source, (scale,) = operands
    lanes, places = [int(x) for x in prepared.lanes], [8 * int(x) for x in prepared.bytes]

    def body(s: cross.Lanes) -> list[str]:
        if scale.literal is None:
            s.whole_wave()
        w = s.g.w
        word = s.wide(0, s.of(0, s.in_wave(s.table(lanes))))
        byte = w.emit(f"and i64 {w.emit(f'lshr i64 {word}, {s.table(places)}')}, 255")
        return [w.emit(f"trunc i64 {byte} to i32")]

    (exponent,) = cross.step(b, [scale], ["i32"], body)
    (factor,) = b.apply(lambda v, e: [factor_of(v, e)], [exponent], ["double"])
    count = len(source) * bits_of(source[0].type) // prepared.up.fmt.bits
    return _numbers(b, prepared.up, codes_of(b, source, prepared.up.fmt.bits, 0, count), factor)


# ---- numbers to codes


def _codes(
    b: Lowering, fmt: SmallFloat, kind: str, values: list[Part], factor: Part | None, random: Part | None
) -> list[Part]:
    wide = _WIDE[kind]

    def run(v: Values, x: str, *rest: str) -> list[str]:
        number, extra = arith.to_double(v, wide, x), list(rest)
        if factor is not None:
            number = v.op("fdiv", "double", number, extra.pop(0))
        word = v.cast("zext", "i32", extra[0], "i64") if extra else None
        return [v.cast("trunc", "i64", small_codes.encode(TextOps(v), fmt, number, random=word), "i32")]

    found = []
    for value in values:
        found += b.apply(run, [value, *(p for p in (factor, random) if p is not None)], ["i32"])
        if random is not None:
            (random,) = b.apply(lambda v, r: [next_random(v, r)], [random], ["i32"])
    return found


def _joined(codes: list[Part], width: int, word: int) -> Callable[..., list[str]]:
    """The function that puts codes into words, the first lowest."""
    count = -(-len(codes) * width // word)

    def run(v: Values, *args: str) -> list[str]:
        t = f"i{word}"
        words = [""] * count
        for i, a in enumerate(args):
            code = a if word == 32 else v.cast("trunc", "i32", a, t)
            at, shift = divmod(i * width, word)
            moved = v.op("shl", t, code, v.const(t, shift)) if shift else code
            words[at] = v.op("or", t, words[at], moved) if words[at] else moved
            if shift + width > word:
                words[at + 1] = v.op("lshr", t, code, v.const(t, word - shift))
        return words

    return run


def _down(b: Lowering, down: Down, operands: list[list[Part]]) -> list[Part]:
    left = list(operands)
    factor = scale_of(b, left.pop()[0]) if down.scaled else None
    old = left.pop(0) if down.scaled else left.pop()
    random = left.pop()[0] if down.stochastic else None
    codes = _codes(b, down.fmt, down.kind, [p for parts in left for p in parts], factor, random)
    (word,) = b.apply(_joined(codes, down.fmt.bits, 32), codes, ["i32"])
    (before,) = recast(b, old, ["i32"])
    shift = down.place * down.bits
    mask = ((1 << down.bits) - 1) << shift

    def insert(v: Values, a: str, new: str) -> list[str]:
        kept = v.op("and", "i32", a, v.const("i32", bits.signed_literal(~mask, 32)))
        moved = v.op("shl", "i32", new, v.const("i32", shift)) if shift else new
        return [v.op("or", "i32", kept, moved)]

    return recast(b, b.apply(insert, [before, word], ["i32"]), [p.type for p in old])


def _whole(b: Lowering, inst: Inst, down: DownWhole, operands: list[list[Part]]) -> list[Part]:
    left = list(operands)
    factor = scale_of(b, left.pop()[0]) if down.scaled else None
    random = left.pop()[0] if down.stochastic else None
    values = left[0]
    if down.interleave:
        values = [p for pair in zip(values, left[1], strict=True) for p in pair]
    codes = _codes(b, down.fmt, down.kind, values, factor, random)
    word = 16 if len(codes) == 2 else 32
    count = -(-len(codes) * down.fmt.bits // word)
    words = b.apply(_joined(codes, down.fmt.bits, word), codes, [f"i{word}"] * count)
    return recast(b, words, part_types(inst.type))
