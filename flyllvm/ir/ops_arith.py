"""Elementwise operations: the ``arith`` and ``math`` dialects.

Names, operand order and meaning are MLIR's.  They take scalars or vectors of equal type.  Integer division and
remainder are not ``pure``: they trap on zero.
"""

from __future__ import annotations

from . import types as t
from .core import Op, op

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, ClassVar

#: Fast-math flags in LLVM's spelling; ``fast`` is all of them.
FASTMATH = ("nnan", "ninf", "nsz", "arcp", "contract", "afn", "reassoc", "fast")
CMPI = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")
CMPF = ("oeq", "ogt", "oge", "olt", "ole", "one", "ord", "ueq", "ugt", "uge", "ult", "ule", "une", "uno")


def _is_int(type_: t.Type) -> bool:
    return isinstance(type_, t.IntType) or (isinstance(type_, t.VectorType) and isinstance(type_.elem, t.IntType))


def _is_float(type_: t.Type) -> bool:
    elem = type_.elem if isinstance(type_, t.VectorType) else type_
    return isinstance(elem, t.FloatType) and not elem.is_small


def check_fastmath(o: Op) -> None:
    """Checks the attribute ``fastmath``."""
    _check_flags(o, "fastmath", FASTMATH)


def _check_flags(o: Op, name: str, legal: tuple[str, ...]) -> None:
    flags = o.attrs.get(name)
    if flags is None:
        return
    if not isinstance(flags, tuple):
        raise o.fail(f"{name} is {flags!r}", "give a tuple of flags")
    for flag in flags:
        if flag not in legal:
            raise o.fail(f"unknown {name} flag {flag!r}", f"use: {', '.join(legal) or 'none here'}")


@op
class Constant(Op):
    """``arith.constant``: attr ``value``, a Python number, or a tuple of them for a vector (one number splats)."""

    __slots__ = ()
    name = "arith.constant"
    pure = True
    arity = (0, 0, 1, 0)
    attr_names = ("value",)

    def verify(self) -> None:
        type_, value = self.results[0].type, self.attrs.get("value")
        elem, count = t.scalar_of(type_), t.count_of(type_)
        values = value if isinstance(value, tuple) else (value,)
        if isinstance(value, tuple) and len(value) != count:
            raise self.fail(f"{len(value)} numbers for {type_}", f"give one number or {count}")
        for v in values:
            if isinstance(v, bool) or not isinstance(v, (int, float)):
                raise self.fail(f"{v!r} is no number for {type_}", "use int or float")
            if isinstance(elem, t.IntType):
                if not isinstance(v, int):
                    raise self.fail(f"{v!r} is no integer for {type_}", "use an int")
                if not -(1 << (elem.bits - 1)) <= v < 1 << elem.bits:
                    raise self.fail(f"{v} does not fit {type_}", f"use a value of {elem.bits} bits")
            elif isinstance(v, int) and v.bit_length() > 1024:
                raise self.fail(f"an integer of {v.bit_length()} bits does not fit {type_}", "use a float")


@op
class Poison(Op):
    """``ub.poison``: a value nothing may depend on: register memory that was never written."""

    __slots__ = ()
    name = "ub.poison"
    pure = True
    arity = (0, 0, 1, 0)

    def verify(self) -> None:
        t.scalar_of(self.results[0].type)


class _Binary(Op):
    __slots__ = ()
    arity = (2, 2, 1, 0)
    floats: ClassVar[bool]
    want: ClassVar[str]

    def verify(self) -> None:
        a, b, r = self.operands[0].type, self.operands[1].type, self.results[0].type
        if (a is not b and a != b) or (a is not r and a != r):
            raise self.fail(f"operand types {a} and {b}, result {r} differ", "convert the operands to one type")
        if not (_is_float if self.floats else _is_int)(a):
            raise self.fail(f"operand type {a}", f"use {self.want}")
        check_fastmath(self)


class IntBinary(_Binary):
    """Integer arithmetic; attr ``overflow`` holds LLVM's ``nsw`` / ``nuw``."""

    __slots__ = ()
    floats = False
    want = "integers or vectors of them"
    attr_names = ("overflow",)

    def verify(self) -> None:
        super().verify()
        _check_flags(self, "overflow", ("nsw", "nuw") if self.name in _WRAPPING else ())


class FloatBinary(_Binary):
    """Float arithmetic on f16, bf16, f32, f64; attr ``fastmath`` is a tuple of flags."""

    __slots__ = ()
    floats = True
    want = "f16, bf16, f32 or f64, or vectors of them; convert smaller floats first"
    attr_names = ("fastmath",)


def _make(base: type[Op], name: str, doc: str, pure: bool = True, **extra: Any) -> type[Op]:
    cls = type(name.replace(".", "_"), (base,), {"__slots__": (), "__doc__": doc, "name": name, "pure": pure, **extra})
    return op(cls)


_WRAPPING = ("arith.addi", "arith.subi", "arith.muli", "arith.shli")

#: LLVM opcode (or intrinsic, with a dot) of every elementwise binary operation.
INT_BINARY = {
    "arith.addi": "add", "arith.subi": "sub", "arith.muli": "mul", "arith.divsi": "sdiv", "arith.divui": "udiv",
    "arith.remsi": "srem", "arith.remui": "urem", "arith.andi": "and", "arith.ori": "or", "arith.xori": "xor",
    "arith.shli": "shl", "arith.shrsi": "ashr", "arith.shrui": "lshr", "arith.minsi": "llvm.smin",
    "arith.maxsi": "llvm.smax", "arith.minui": "llvm.umin", "arith.maxui": "llvm.umax",
}  # fmt: skip
FLOAT_BINARY = {
    "arith.addf": "fadd", "arith.subf": "fsub", "arith.mulf": "fmul", "arith.divf": "fdiv", "arith.remf": "frem",
    "arith.minimumf": "llvm.minimum", "arith.maximumf": "llvm.maximum", "arith.minnumf": "llvm.minnum",
    "arith.maxnumf": "llvm.maxnum", "math.copysign": "llvm.copysign", "math.powf": "llvm.pow",
}  # fmt: skip
for _name, _llvm in INT_BINARY.items():
    _make(IntBinary, _name, f"``{_name}`` (LLVM ``{_llvm}``).", "div" not in _name and "rem" not in _name)
for _name, _llvm in FLOAT_BINARY.items():
    _make(FloatBinary, _name, f"``{_name}`` (LLVM ``{_llvm}``).")


class FloatUnary(Op):
    """Float function of one operand; attr ``fastmath``."""

    __slots__ = ()
    arity = (1, 1, 1, 0)
    attr_names = ("fastmath",)

    def verify(self) -> None:
        a, r = self.operands[0].type, self.results[0].type
        if a != r or not _is_float(a):
            raise self.fail(f"{a} -> {r}", "use f16, bf16, f32 or f64, or vectors of them, with the same result type")
        check_fastmath(self)


#: LLVM intrinsic of every float function of one operand that the IR names.
FLOAT_UNARY = {
    "arith.negf": "fneg", "math.absf": "llvm.fabs", "math.ceil": "llvm.ceil", "math.floor": "llvm.floor",
    "math.trunc": "llvm.trunc", "math.round": "llvm.round", "math.roundeven": "llvm.roundeven",
    "math.exp": "llvm.exp", "math.exp2": "llvm.exp2", "math.log": "llvm.log", "math.log2": "llvm.log2",
    "math.log10": "llvm.log10", "math.sqrt": "llvm.sqrt", "math.rsqrt": "llvm.amdgcn.rsq", "math.sin": "llvm.sin",
    "math.cos": "llvm.cos", "rocdl.rcp": "llvm.amdgcn.rcp",
}  # fmt: skip
for _name, _llvm in FLOAT_UNARY.items():
    _make(FloatUnary, _name, f"``{_name}`` (LLVM ``{_llvm}``).")


class IntUnary(Op):
    """Integer function of one operand."""

    __slots__ = ()
    arity = (1, 1, 1, 0)

    def verify(self) -> None:
        a, r = self.operands[0].type, self.results[0].type
        if a != r or not _is_int(a):
            raise self.fail(f"{a} -> {r}", "use integers with the same result type")


INT_UNARY = {"math.absi": "llvm.abs", "math.ctlz": "llvm.ctlz", "math.cttz": "llvm.cttz", "math.ctpop": "llvm.ctpop"}
for _name, _llvm in INT_UNARY.items():
    _make(IntUnary, _name, f"``{_name}`` (LLVM ``{_llvm}``).")


@op
class Fma(Op):
    """``math.fma``: ``a * b + c`` with one rounding; attr ``fastmath``."""

    __slots__ = ()
    name = "math.fma"
    pure = True
    arity = (3, 3, 1, 0)
    attr_names = ("fastmath",)

    def verify(self) -> None:
        kinds = {o.type for o in self.operands} | {self.results[0].type}
        if len(self.operands) != 3 or len(kinds) != 1 or not _is_float(self.results[0].type):
            raise self.fail(f"operands {[str(o.type) for o in self.operands]}", "use three floats of one type")
        check_fastmath(self)


class _Cmp(Op):
    __slots__ = ()
    arity = (2, 2, 1, 0)
    attr_names = ("predicate",)
    predicates: ClassVar[tuple[str, ...]]
    floats: ClassVar[bool]

    def verify(self) -> None:
        a, b, r = self.operands[0].type, self.operands[1].type, self.results[0].type
        if self.attrs.get("predicate") not in self.predicates:
            raise self.fail(f"unknown predicate {self.attrs.get('predicate')!r}", f"use: {', '.join(self.predicates)}")
        if a != b or not (_is_float if self.floats else _is_int)(a) or r != t.like(a, t.I1):
            raise self.fail(f"compares {a} with {b} giving {r}", "compare two values of one type; the result is i1")


@op
class CmpI(_Cmp):
    """``arith.cmpi``: attr ``predicate``."""

    __slots__ = ()
    name = "arith.cmpi"
    pure = True
    predicates = CMPI
    floats = False


@op
class CmpF(_Cmp):
    """``arith.cmpf``: attr ``predicate``."""

    __slots__ = ()
    name = "arith.cmpf"
    pure = True
    predicates = CMPF
    floats = True


@op
class Select(Op):
    """``arith.select``: condition ``i1`` (or a vector of them), two values of one type."""

    __slots__ = ()
    name = "arith.select"
    pure = True
    arity = (3, 3, 1, 0)

    def verify(self) -> None:
        c, a, b = (o.type for o in self.operands)
        if a != b or a != self.results[0].type or t.scalar_of(c) != t.I1:
            raise self.fail(f"select {c}, {a}, {b}", "use an i1 and two values of one type")
        if not isinstance(a, (t.ScalarType, t.VectorType)):
            raise self.fail(f"select of {a}", "select numbers (offsets, say), or yield it from the arms of an scf.if")
        if isinstance(c, t.VectorType) and t.count_of(a) != c.count:
            raise self.fail(f"condition {c} for values {a}", "use one i1 per element, or a scalar i1")


class Cast(Op):
    """A conversion; ``kinds`` says from what to what (``i`` integer, ``f`` float) and how the width moves."""

    __slots__ = ()
    arity = (1, 1, 1, 0)
    kinds: ClassVar[str]
    llvm: ClassVar[str]

    def verify(self) -> None:
        a, r = self.operands[0].type, self.results[0].type
        ea, er = t.scalar_of(a), t.scalar_of(r)
        source, target, width = tuple(self.kinds)
        good = t.count_of(a) == t.count_of(r)
        good &= (_is_int if source == "i" else _is_float)(a) and (_is_int if target == "i" else _is_float)(r)
        good &= {"<": ea.bits < er.bits, ">": ea.bits > er.bits, "*": True}[width]
        if not good:
            raise self.fail(f"cannot convert {a} to {r}", f"{self.name} converts {_CAST_WORDS[self.kinds]}")


_CAST_WORDS = {
    "ii<": "an integer to a wider one", "ii>": "an integer to a narrower one", "ff<": "a float to a wider one",
    "ff>": "a float to a narrower one", "if*": "an integer to a float", "fi*": "a float to an integer",
}  # fmt: skip
CASTS = {
    "arith.extsi": ("ii<", "sext"), "arith.extui": ("ii<", "zext"), "arith.trunci": ("ii>", "trunc"),
    "arith.extf": ("ff<", "fpext"), "arith.truncf": ("ff>", "fptrunc"), "arith.sitofp": ("if*", "sitofp"),
    "arith.uitofp": ("if*", "uitofp"), "arith.fptosi": ("fi*", "fptosi"), "arith.fptoui": ("fi*", "fptoui"),
}  # fmt: skip
for _name, (_kinds, _llvm) in CASTS.items():
    _make(Cast, _name, f"``{_name}``: {_CAST_WORDS[_kinds]}.", kinds=_kinds, llvm=_llvm)


@op
class Bitcast(Op):
    """``vector.bitcast``: the same bits as another scalar or vector type; element 0 stays in the low bits."""

    __slots__ = ()
    name = "vector.bitcast"
    pure = True
    arity = (1, 1, 1, 0)

    def verify(self) -> None:
        a, r = self.operands[0].type, self.results[0].type
        bits_a, bits_r = t.scalar_of(a).bits * t.count_of(a), t.scalar_of(r).bits * t.count_of(r)
        if bits_a != bits_r:
            raise self.fail(f"{a} has {bits_a} bits, {r} has {bits_r}", "bitcast between types of equal size in bits")
