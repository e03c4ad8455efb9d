"""Lowering of atoms: state, copy calls and matrix calls."""

from __future__ import annotations

from ..ir import types as t
from ..ir.atom_state import payload_of, state_of
from ..ir.ops_atoms import CopyAtomCallSSA
from ..ir.protocols import LLValue
from .aggregate import StructValue
from .lower_vector import held

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..ir.core import Op, Value
    from ..ir.protocols import MemOperand
    from .lower import Handler, Lowering


def is_stateful(type_: t.Type) -> bool:
    """Whether an atom type carries state."""
    # What `isinstance(..., StatefulOp)` asks, without its walk over the protocol's members.
    return hasattr(payload_of(type_), "state")


def _make_atom(lw: Lowering, op: Op) -> None:
    type_ = op.results[0].type
    payload: Any = payload_of(type_)
    lw.check_target(payload)
    if not is_stateful(type_):
        return
    state = payload.state
    fields = [None if f.default is None else lw.em.const(f.type.storage, f.default) for f in state.fields]
    names = tuple([f.name for f in state.fields])
    lw.values[op.results[0]] = _made(lw, StructValue(lw.em, state.lltype, fields, names, payload))


def _set_value(lw: Lowering, op: Op) -> None:
    atom, value = op.operands
    state = state_of(atom.type)
    name = str(op.attrs["field"])
    state.check_value(name, value.type)
    old = lw.values.get(atom)
    if not isinstance(old, StructValue):
        raise lw.em.fail(f"an atom of type {atom.type} is used where it is not defined", "make the atom first")
    lw.values[op.results[0]] = _made(lw, old.with_field(state.index(name), lw.get(value)))


def _made(lw: Lowering, state: StructValue) -> StructValue:
    """The state as option ``materialise_state`` wants it: run-time fields read back out of an LLVM struct."""
    if not lw.options.materialise_state or all(f is None or f.const is not None for f in state.fields):
        return state
    return from_struct(lw, LLValue(state.type, state.text, None, state.uniform, state.level), state)


def from_struct(lw: Lowering, value: LLValue, like: StructValue) -> StructValue:
    """The fields of an LLVM struct; constants and unset fields stay those of ``like``."""
    fields: list[LLValue | None] = [
        f if f is None or f.const is not None else lw.em.extract_value(value, i) for i, f in enumerate(like.fields)
    ]
    return StructValue(lw.em, like.type, fields, like.names, like.owner)


def _state(lw: Lowering, atom: Value) -> LLValue | None:
    if not is_stateful(atom.type):
        return None
    found = lw.values.get(atom)
    if not isinstance(found, StructValue):
        raise lw.em.fail(f"an atom of type {atom.type} is used where it is not defined", "make the atom first")
    return found


def _tiled(lw: Lowering, op: Op) -> None:
    if is_stateful(op.results[0].type):
        lw.values[op.results[0]] = lw.values[op.operands[0]]


# --- copies ---------------------------------------------------------------------------------------


def _copy(lw: Lowering, op: Op) -> None:
    atom, src, dst = op.operands[:3]
    payload: Any = payload_of(atom.type)
    lw.check_target(payload)
    pred = _pred(lw, op.operands[3]) if len(op.operands) > 3 else None
    payload.emit_atom_call(lw.em, _state(lw, atom), lw.memory(src), lw.memory(dst), pred)


def _pred(lw: Lowering, value: Value) -> LLValue:
    if value.type == t.I1:
        return lw.get(value)
    return lw.em.load(lw.memory(value), t.I1.storage)


def _operand(lw: Lowering, value: Value) -> MemOperand | LLValue:
    return lw.memory(value) if isinstance(value.type, t.MemRefType) else lw.get(value)


def _copy_ssa(lw: Lowering, op: Op) -> None:
    if not isinstance(op, CopyAtomCallSSA):
        raise lw.em.fail(f"{op.name} of another class", "build operations through the registry")
    payload: Any = payload_of(op.operands[0].type)
    lw.check_target(payload)
    src, dst, pred, old = op.parts()
    result = op.results[0] if op.results else None
    target = lw.memory(dst) if dst is not None else t.storage(result.type) if result is not None else None
    made = payload.emit_atom_call_ssa(
        lw.em,
        _state(lw, op.operands[0]),
        _operand(lw, src),
        target,
        None if pred is None else lw.get(pred),
        None if old is None else lw.get(old),
    )
    if result is not None:
        lw.values[result] = _result(lw, payload, made, result.type)


def _result(lw: Lowering, payload: Any, made: object, type_: t.Type) -> LLValue:
    if not isinstance(made, LLValue):
        raise lw.em.fail(f"the atom {payload} gave no value of type {type_}", "return the value from its SSA form")
    want = t.storage(type_)
    if made.type.bits != want.bits:
        raise lw.em.fail(
            f"the atom {payload} gave {made.type.text}, not {want.text}", "return the result in the kernel's own type"
        )
    return made if made.type is want else held(lw, made, type_)


# --- matrix operations ----------------------------------------------------------------------------


def _mma(lw: Lowering, op: Op) -> None:
    atom, *operands = op.operands
    payload: Any = payload_of(atom.type)
    lw.check_target(payload)
    d, a, b, c = (lw.memory(v) for v in operands)
    payload.emit_atom_call(lw.em, _state(lw, atom), d, a, b, c)


def _mma_ssa(lw: Lowering, op: Op) -> None:
    atom, a_value, b_value, c_value = op.operands
    payload: Any = payload_of(atom.type)
    lw.check_target(payload)
    a, b, c = lw.get(a_value), lw.get(b_value), lw.get(c_value)
    result = op.results[0]
    made = payload.emit_atom_call_ssa(lw.em, _state(lw, atom), a, b, c)
    lw.values[result] = _result(lw, payload, made, result.type)


TABLE: dict[str, Handler] = {
    "fly.make_copy_atom": _make_atom,
    "fly.make_mma_atom": _make_atom,
    "fly.make_tiled_copy": _tiled,
    "fly.make_tiled_mma": _tiled,
    "fly.atom.set_value": _set_value,
    "fly.copy_atom_call": _copy,
    "fly.copy_atom_call_ssa": _copy_ssa,
    "fly.mma_atom_call": _mma,
    "fly.mma_atom_call_ssa": _mma_ssa,
}
