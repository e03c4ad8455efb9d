"""Lowering of numbers: ``arith`` and ``math``."""

from __future__ import annotations

from ..ir import lltype as ll, types as t
from ..ir.ops_arith import CASTS, FLOAT_BINARY, FLOAT_UNARY, INT_BINARY, INT_UNARY
from ..ir.protocols import LLValue
from .address import mangle
from .constants import scalar_const, vector_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..ir.core import Op
    from .lower import Handler, Lowering

# AMDGPU has no double-precision code for these, and ends the process over them.
_NO_F64 = frozenset(
    ("math.exp", "math.exp2", "math.log", "math.log2", "math.log10", "math.sin", "math.cos", "math.powf")
)


def flags_of(lw: Lowering, op: Op) -> str:
    """The fast-math flags of an operation, with those of the whole module."""
    own = op.attrs.get("fastmath") or ()
    module = lw.options.fast_math
    if not own and not module:
        return ""
    flags = dict.fromkeys((*module, *own))
    return "fast" if "fast" in flags else " ".join(flags)


def _constant(lw: Lowering, op: Op) -> None:
    type_ = op.results[0].type
    value = op.attrs["value"]
    held = t.storage(type_)
    elem = t.scalar_of(type_)
    if isinstance(value, tuple):
        values = tuple([scalar_const(elem, v) for v in value])
        made = LLValue(held, vector_text(held, values), None, True, 0)
    else:
        made = lw.em.const(held, scalar_const(elem, value))
    lw.values[op.results[0]] = made


def _poison(lw: Lowering, op: Op) -> None:
    lw.values[op.results[0]] = lw.em.poison(t.storage(op.results[0].type))


def _int_binary(opcode: str) -> Handler:
    if opcode.startswith("llvm."):
        name = opcode[5:]

        def call(lw: Lowering, op: Op) -> None:
            a, b = lw.get(op.operands[0]), lw.get(op.operands[1])
            lw.values[op.results[0]] = lw.em.pure_intrinsic(f"{name}.{mangle(a.type)}", a.type, [a, b])

        return call

    def handler(lw: Lowering, op: Op) -> None:
        overflow = op.attrs.get("overflow")
        flags = "" if not overflow else overflow if isinstance(overflow, str) else " ".join(overflow)
        values = lw.values
        values[op.results[0]] = lw.em.binary(opcode, lw.get(op.operands[0]), lw.get(op.operands[1]), flags)

    return handler


def _float_binary(name: str, opcode: str) -> Handler:
    if opcode.startswith("llvm."):
        return _float_call(name, opcode[5:])

    def handler(lw: Lowering, op: Op) -> None:
        a, b = lw.get(op.operands[0]), lw.get(op.operands[1])
        if opcode == "frem" and a.type.elem is ll.BF16:
            lw.values[op.results[0]] = _bf16_remainder(lw, a, b, flags_of(lw, op))
            return
        lw.values[op.results[0]] = lw.em.binary(opcode, a, b, flags_of(lw, op))

    return handler


def _bf16_remainder(lw: Lowering, a: LLValue, b: LLValue, flags: str) -> LLValue:
    """LLVM has no bf16 remainder on AMDGPU; the one of f32 is exact, and so is rounding it back."""
    em, type = lw.em, a.type
    wide = ll.vec(type.count, ll.F32) if type.kind == "vector" else ll.F32
    return em.cast("fptrunc", em.binary("frem", em.cast("fpext", a, wide), em.cast("fpext", b, wide), flags), type)


def _float_call(name: str, intrinsic: str) -> Handler:
    def handler(lw: Lowering, op: Op) -> None:
        args = [lw.get(o) for o in op.operands]
        type = args[0].type
        if name in _NO_F64 and type.elem is ll.F64 and lw.em.module.backend.name == "amdgpu":
            raise lw.em.fail(f"{name} of f64 has no code on {lw.target.processor}", "compute it in f32")
        flags = flags_of(lw, op)
        lw.values[op.results[0]] = lw.em.float_intrinsic(f"{intrinsic}.{mangle(type)}", type, args, flags)

    return handler


def _float_unary(name: str, opcode: str) -> Handler:
    if opcode == "fneg":

        def negate(lw: Lowering, op: Op) -> None:
            a = lw.get(op.operands[0])
            flags = flags_of(lw, op)
            head = f"fneg {flags}" if flags else "fneg"
            lw.values[op.results[0]] = lw.em.value(a.type, f"{head} {a.type.text} {a.text}", a.uniform)

        return negate
    if opcode.startswith("llvm.amdgcn."):
        return _by_element(opcode[5:])
    return _float_call(name, opcode[5:])


def _by_element(intrinsic: str) -> Handler:
    """AMD's approximations take scalars of f16, f32 and f64; bf16 goes through f32."""

    def one(lw: Lowering, x: LLValue) -> LLValue:
        em, type = lw.em, x.type
        if type is ll.BF16:
            wide = em.cast("fpext", x, ll.F32)
            return em.cast("fptrunc", em.intrinsic(f"{intrinsic}.f32", ll.F32, [wide]), type)
        return em.intrinsic(f"{intrinsic}.{mangle(type)}", type, [x])

    def handler(lw: Lowering, op: Op) -> None:
        em = lw.em
        a = lw.get(op.operands[0])
        if a.type.kind != "vector":
            made = one(lw, a)
        else:
            made = em.poison(a.type)
            for i in range(a.type.count):
                made = em.insert_element(made, one(lw, em.extract_element(a, i)), i)
        lw.values[op.results[0]] = made

    return handler


def _int_unary(intrinsic: str) -> Handler:
    # `abs`, `ctlz` and `cttz` take a flag: false means that the corner case (INT_MIN, 0) has a result.
    flagged = intrinsic != "ctpop"

    def handler(lw: Lowering, op: Op) -> None:
        a = lw.get(op.operands[0])
        args = [a, lw.em.const(ll.I1, 0)] if flagged else [a]
        lw.values[op.results[0]] = lw.em.pure_intrinsic(f"{intrinsic}.{mangle(a.type)}", a.type, args)

    return handler


def _fma(lw: Lowering, op: Op) -> None:
    args = [lw.get(o) for o in op.operands]
    type = args[0].type
    lw.values[op.results[0]] = lw.em.float_intrinsic(f"fma.{mangle(type)}", type, args, flags_of(lw, op))


def _cmpi(lw: Lowering, op: Op) -> None:
    a, b = lw.get(op.operands[0]), lw.get(op.operands[1])
    lw.values[op.results[0]] = lw.em.icmp(op.attrs["predicate"], a, b)


def _cmpf(lw: Lowering, op: Op) -> None:
    a, b = lw.get(op.operands[0]), lw.get(op.operands[1])
    lw.values[op.results[0]] = lw.em.fcmp(op.attrs["predicate"], a, b, flags_of(lw, op))


def _select(lw: Lowering, op: Op) -> None:
    cond, a, b = (lw.get(o) for o in op.operands)
    lw.values[op.results[0]] = lw.em.select(cond, a, b)


def _cast(opcode: str) -> Handler:
    def handler(lw: Lowering, op: Op) -> None:
        source, result = op.operands[0], op.results[0]
        lw.values[result] = lw.em.cast(opcode, lw.get(source), t.storage(result.type))

    return handler


def _assume(lw: Lowering, op: Op) -> None:
    lw.values[op.results[0]] = lw.get(op.operands[0])


TABLE: dict[str, Handler] = {
    "arith.constant": _constant,
    "ub.poison": _poison,
    "math.fma": _fma,
    "arith.cmpi": _cmpi,
    "arith.cmpf": _cmpf,
    "arith.select": _select,
    "fly.assume": _assume,
}
TABLE.update({name: _int_binary(llvm) for name, llvm in INT_BINARY.items()})
TABLE.update({name: _float_binary(name, llvm) for name, llvm in FLOAT_BINARY.items()})
TABLE.update({name: _float_unary(name, llvm) for name, llvm in FLOAT_UNARY.items()})
TABLE.update({name: _int_unary(llvm[5:]) for name, llvm in INT_UNARY.items()})
TABLE.update({name: _cast(llvm) for name, (_, llvm) in CASTS.items()})
