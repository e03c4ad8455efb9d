"""Calls of intrinsics."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import intrinsics, matrix, matrix_transpose, types as ty
from ..ir import Inst
from ..tensor import TABLE as tensor_copies
from . import atomic, buffer, clusters, cross, groups, math, packed, rare, tensor
from .control import SignalStep
from .forms import address_cast
from .lower import Lowering
from .parts import NotCovered, Part, part_types, scalar_type
from .text import Values, suffix_of

Lower = Callable[[Lowering, Inst], "list[Part] | None"]


def lower(b: Lowering, inst: Inst) -> list[Part] | None:
    """The parts of a call's result, ``None`` where it has none."""
    name = (inst.callee or "").removeprefix("llvm.")
    if name.startswith("amdgcn.") and matrix.supports(name.removeprefix("amdgcn.")):
        from . import products

        return products.lower(b, inst, name.removeprefix("amdgcn."))
    if name.startswith("amdgcn.") and matrix_transpose.is_transposing(name.removeprefix("amdgcn.")):
        from . import transpose

        return transpose.lower(b, inst, name.removeprefix("amdgcn."))
    found = find(name)
    if found is None:
        raise NotCovered(f"@{inst.callee}")
    return found(b, inst)


def find(name: str) -> Lower | None:
    """What lowers an intrinsic; type suffixes are dropped one by one."""
    while name:
        if name in TABLE:
            return TABLE[name]
        name, _, suffix = name.rpartition(".")
        if intrinsics._TYPE_SUFFIX.fullmatch(suffix) is None:
            return None
    return None


# ---- ids


def _workitem(axis: int) -> Lower:
    def lower(b: Lowering, inst: Inst) -> list[Part]:
        if b.block[axis] == 1:
            return [Part("i32", True, -1, -1, "0")]
        return [b.lane_values(f"@item_{'xyz'[axis]}")]

    return lower


def _known(name: str, t: str) -> Lower:
    return lambda b, inst: [b.on_entry(name, t)]


def _wave_id(b: Lowering, inst: Inst) -> list[Part]:
    return [b.lane_values("@wave_id")]


def _constant(value: Callable[[Lowering], int]) -> Lower:
    return lambda b, inst: [Part(part_types(inst.type)[0], True, -1, -1, str(value(b)))]


def _nothing(b: Lowering, inst: Inst) -> None:
    return None


def _signal(b: Lowering, inst: Inst) -> None:
    """``s.barrier.signal``: nothing where the wait follows in the same node."""
    if b.splits:
        b.add(SignalStep())


def _first(b: Lowering, inst: Inst) -> list[Part]:
    return b.renamed(b.parts(inst.operands[0]))


def _assume(b: Lowering, inst: Inst) -> None:
    def run(v: Values, a: str) -> list[str]:
        v.fault_if(v.op("xor", "i1", a, v.const("i1", "true")))
        return []

    b.apply(run, [b.part(inst.operands[0])], [])


# ---- element-wise


def _element(count: int, fn_of: math.FnOf) -> Lower:
    def lower(b: Lowering, inst: Inst) -> list[Part]:
        operands = inst.operands[:count]
        t = ty.scalar_of(operands[0].type)
        if any(ty.scalar_of(o.type) is not t for o in operands):
            raise NotCovered(f"@{inst.callee} of differing types")
        return b.each(fn_of(t, b.flush), scalar_type(t), *map(b.parts, operands))

    return lower


def _ldexp(b: Lowering, inst: Inst) -> list[Part]:
    values, powers = map(b.parts, inst.operands[:2])
    t = ty.scalar_of(inst.type)
    return b.each(math.ldexp(t, powers[0].type, b.flush), scalar_type(t), values, powers)


def _with_overflow(name: str) -> Lower:
    def lower(b: Lowering, inst: Inst) -> list[Part]:
        x, y = map(b.parts, inst.operands)
        elem = x[0].type

        def run(v: Values, a: str, c: str) -> list[str]:
            t, flag = v.type(elem), v.type("i1")
            full = f"llvm.{name}.with.overflow.{suffix_of(t)}"
            pair = v.w.call(f"{{ {t}, {flag} }}", full, (t, a), (t, c))
            return [v.w.emit(f"extractvalue {{ {t}, {flag} }} {pair}, {i}") for i in range(2)]

        pairs = [b.apply(run, [p, q], [elem, "i1"]) for p, q in zip(x, y, strict=True)]
        return [pair[0] for pair in pairs] + [pair[1] for pair in pairs]

    return lower


def _mbcnt(shift: int) -> Lower:
    def lower(b: Lowering, inst: Inst) -> list[Part]:
        mask, base = map(b.part, inst.operands[:2])
        below = b.lane_values("@below_lo" if shift == 0 else "@below_hi")

        def run(v: Values, m: str, start: str, bits: str) -> list[str]:
            count = v.intrinsic("llvm.ctpop", "i32", v.op("and", "i32", m, bits))
            return [v.op("add", "i32", count, start)]

        return b.apply(run, [mask, base, below], ["i32"])

    return lower


_REDUCE = {"add": "add", "mul": "mul", "and": "and", "or": "or", "xor": "xor"}
_REDUCE_BY = {name: f"llvm.{name}" for name in ("smax", "smin", "umax", "umin")}


def _reduce(name: str) -> Lower:
    """``llvm.vector.reduce.*`` of integers, element by element."""

    def lower(b: Lowering, inst: Inst) -> list[Part]:
        parts = b.parts(inst.operands[-1])
        t = parts[0].type

        def run(v: Values, *args: str) -> list[str]:
            total = args[0]
            for a in args[1:]:
                total = v.op(_REDUCE[name], t, total, a) if name in _REDUCE else v.intrinsic(
                    _REDUCE_BY[name], t, total, a)  # fmt: skip
            return [total]

        return b.apply(run, parts, [t])

    return lower


def _buffer(fn: Callable[..., Any], structured: bool) -> Lower:
    def lower(b: Lowering, inst: Inst) -> list[Part] | None:
        result: list[Part] | None = fn(b, inst, structured)
        return result

    return lower


_NO_OPS = (
    "amdgcn.s.waitcnt amdgcn.s.wait.dscnt amdgcn.s.wait.loadcnt amdgcn.s.wait.storecnt amdgcn.s.wait.asynccnt "
    "amdgcn.s.wait.tensorcnt amdgcn.wait.asyncmark amdgcn.asyncmark amdgcn.s.setreg"
).split()

TABLE: dict[str, Lower] = {
    **{f"amdgcn.workitem.id.{a}": _workitem(i) for i, a in enumerate("xyz")},
    **{f"amdgcn.workgroup.id.{a}": _known(f"%group_{a}", "i32") for a in "xyz"},
    **dict.fromkeys((*intrinsics._NO_OPS, *_NO_OPS), _nothing),
    **dict.fromkeys(
        "expect ssa.copy amdgcn.wqm amdgcn.strict.wwm launder.invariant.group strip.invariant.group annotation "
        "ptr.annotation threadlocal.address arithmetic.fence".split(),
        _first,
    ),
    "amdgcn.s.barrier.signal": _signal,
    "amdgcn.wave.id": _wave_id,
    "amdgcn.wavefrontsize": _constant(lambda b: b.program.target.wave_size),
    "is.constant": _constant(lambda b: 0),
    "amdgcn.dispatch.ptr": _known("%dispatch_ptr", "i64"),
    "amdgcn.implicitarg.ptr": _known("%implicit_ptr", "i64"),
    "amdgcn.kernarg.segment.ptr": _known("%kernarg_ptr", "i64"),
    "assume": _assume,
    "amdgcn.addrspacecast.nonnull": address_cast,
    "amdgcn.make.buffer.rsrc": buffer.make_rsrc,
    "amdgcn.s.buffer.load": buffer.scalar_load,
    **dict.fromkeys(
        ("amdgcn.global.load.lds", "amdgcn.load.to.lds", "amdgcn.load.async.to.lds", "amdgcn.global.load.async.lds"),
        atomic.load_to_lds,
    ),
    **{
        f"amdgcn.global.{name}.{width}": atomic.async_copy(name.startswith("load"), size)
        for name in ("load.async.to.lds", "store.async.from.lds")
        for width, size in (("b8", 1), ("b32", 4), ("b64", 8), ("b128", 16))
    },
    **dict.fromkeys(tensor_copies, tensor.lower),
    **clusters.TABLE,
    **cross.TABLE,
    **groups.TABLE,
    **packed.TABLE,
    **rare.TABLE,
    "ldexp": _ldexp,
    "amdgcn.ldexp": _ldexp,
    "amdgcn.mbcnt.lo": _mbcnt(0),
    "amdgcn.mbcnt.hi": _mbcnt(32),
    **{name: _element(count, fn) for name, (count, fn) in math.ELEMENT.items()},
    **{f"{s}{op}.with.overflow": _with_overflow(f"{s}{op}") for s in "su" for op in ("add", "sub", "mul")},
    **{f"vector.reduce.{name}": _reduce(name) for name in (*_REDUCE, *_REDUCE_BY)},
    **{
        f"amdgcn.{prefix}.buffer.{word}": _buffer(fn, structured)
        for prefix, structured in (("raw", False), ("raw.ptr", False), ("struct", True), ("struct.ptr", True))
        for word, fn in (
            ("load", buffer.load),
            ("store", buffer.store),
            ("load.lds", atomic.buffer_to_lds),
            ("load.async.lds", atomic.buffer_to_lds),
            *(
                (f"atomic.{name}", atomic.buffer_atomic(name))
                for name in "add sub smin umin smax umax and or xor".split()
            ),
        )
    },
}
