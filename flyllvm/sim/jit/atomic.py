"""Atomic operations and copies to LDS, lane after lane in the order of the NumPy engine.

Workgroups run one after the other here and side by side there.  In LDS that makes no difference; in global memory only
operations are covered that commute and whose result nobody reads.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from .. import buffers, types as ty
from ..ir import Inst
from . import arith, buffer, math
from .access import Load, Memory, Store, outputs_of, read_field, space_of, write_fields
from .bits import Field, fields_of
from .cross import Lanes
from .parts import NotCovered, Part
from .steps import Step
from .text import Values

if TYPE_CHECKING:
    from .gen import Gen
    from .lower import Lowering

_PLAIN = frozenset("add sub and or xor".split())
_PICKS = {"umax": "llvm.umax", "umin": "llvm.umin", "max": "llvm.smax", "min": "llvm.smin"}
# Operations of one class may meet at an address in any order.
_CLASSES = {"add": "add", "sub": "add", "and": "and", "or": "or", "xor": "xor", **{name: name for name in _PICKS}}


def update_of(operation: str, t: ty.Type) -> buffer.Update:
    """The new value from the old one and the operand, as `sim.atomics.update_function`."""
    if operation == "xchg":
        return lambda v, old, new: new
    if isinstance(t, ty.IntType):
        elem = f"i{t.bits}"
        if operation in _PLAIN:
            return lambda v, old, new: v.op(operation, elem, old, new)
        if operation in _PICKS:
            return lambda v, old, new: v.intrinsic(_PICKS[operation], elem, old, new)
        if operation == "usub_sat":
            return lambda v, old, new: v.intrinsic("llvm.usub.sat", elem, old, new)
    elif operation in ("fadd", "fsub"):
        add = arith.binary(operation, t, False)
        return lambda v, old, new: add(v, old, new)[0]
    elif operation in ("fmin", "fmax"):
        pick = math.ELEMENT["minnum" if operation == "fmin" else "maxnum"][1](t, False)
        return lambda v, old, new: pick(v, old, new)[0]
    raise NotCovered(f"atomic {operation} of {t}")


class AtomicStep(Step):
    """``atomicrmw``, or ``cmpxchg`` with two operands for each field."""

    __slots__ = ("address", "fields", "operands", "outputs", "size", "space", "update")

    def __init__(
        self, space: int, address: Part, fields: list[Field], size: int, operands: list[Part], outputs: list[Part],
        update: buffer.Update | None,
    ) -> None:  # fmt: skip
        self.space, self.address, self.fields, self.size = space, address, fields, size
        self.operands, self.outputs, self.update = operands, outputs, update

    def emit(self, g: Gen) -> None:
        """Writes the step."""
        memory = Memory(g, self.space, self.size, True)
        parts = [self.address, *self.operands]
        bases = ["" if p.uniform else g.slot(p) for p in parts]
        targets = [g.slot(p) if p.readers else "" for p in self.outputs]

        def body(lane: str) -> None:
            address, *args = (g.get(p, lane, base) for p, base in zip(parts, bases, strict=True))
            pointer = memory.resolve(address, lane)
            old = [read_field(g, pointer, f) for f in self.fields]
            v = Values(g.w, False, g.fault_label)
            results = list(old)
            if self.update is None:
                same = v.op("icmp eq", self.fields[0].type, old[0], args[0])
                new = [v.select(same, self.fields[0].type, args[1], old[0])]
                results.append(same)
            else:
                new = [self.update(v, a, b) for a, b in zip(old, args, strict=True)]
            write_fields(g, pointer, self.fields, new)
            for part, value, base in zip(self.outputs, results, targets, strict=True):
                if base:
                    g.put(part, lane, value, base)

        g.each_lane(body)


def lower(b: Lowering, inst: Inst) -> list[Part]:
    """``atomicrmw`` and ``cmpxchg``."""
    space, t = space_of(inst.operands[0]), inst.operands[1].type
    operation = inst.extra["operation"] if inst.op == "atomicrmw" else "cmpxchg"
    if space not in (3, 5):
        _check_order(b, inst, operation)
    if space == 7:
        parts = b.parts(inst.operands[0])
        where = buffer.Range(parts[:4], None, parts[4:])
        buffer.atomic_step(b, inst, where, inst.operands[1], update_of(operation, t))
        return []
    fields = fields_of(t)
    if inst.op == "cmpxchg" and (len(fields) != 1 or not fields[0].type.startswith("i")):
        raise NotCovered(f"cmpxchg of {t}")
    update = None if inst.op == "cmpxchg" else update_of(operation, ty.scalar_of(t))
    address, operands = b.part(inst.operands[0]), [p for o in inst.operands[1:] for p in b.parts(o)]
    made = outputs_of(b, fields, False)
    if inst.op == "cmpxchg":
        made.append(Part("i1", False, made[0].node, made[0].step))
    number = b.add(AtomicStep(space, address, fields, ty.store_size(t), operands, made, update))
    b.read([address, *operands], number)
    return made


def buffer_atomic(operation: str) -> Callable[[Lowering, Inst, bool], None]:
    """``raw/struct.(ptr.)buffer.atomic.*``."""

    def lower(b: Lowering, inst: Inst, structured: bool) -> None:
        name, value = buffers.ATOMICS.get(operation, operation), inst.operands[0]
        _check_order(b, inst, name)
        where = buffer.atomic_range(b, inst, structured)
        buffer.atomic_step(b, inst, where, value, update_of(name, ty.scalar_of(value.type)))

    return lower


def _check_order(b: Lowering, inst: Inst, operation: str) -> None:
    """Refuses an operation on global memory whose outcome depends on the order of workgroups."""
    if operation not in _CLASSES:
        raise NotCovered(f"atomic {operation} on global memory")
    if inst.name in b.used:
        raise NotCovered(f"the result of an atomic {operation} on global memory")
    b.global_atomics.add(_CLASSES[operation])
    if len(b.global_atomics) > 1:
        raise NotCovered(f"atomic {' and '.join(sorted(b.global_atomics))} on global memory in one kernel")


# ---- copies to LDS


class LdsCopyStep(Step):
    """Lane i of a wave writes parts at the first running lane's LDS address plus ``i`` times their size."""

    __slots__ = ("address", "fields", "offset", "parts", "size")

    def __init__(self, address: Part, offset: int, parts: list[Part], fields: list[Field], size: int) -> None:
        self.address, self.offset, self.parts, self.fields, self.size = address, offset, parts, fields, size

    def emit(self, g: Gen) -> None:
        """Writes the step."""
        memory = Memory(g, 3, self.size, True)
        inputs = [self.address, *self.parts]
        bases = ["" if p.uniform else g.slot(p) for p in inputs]

        def body(lane: str) -> None:
            s, w = Lanes(g, lane, inputs, bases), g.w
            start = w.emit(f"add i32 {s.of(0, s.first())}, {self.offset}")
            place = w.emit(f"trunc i64 {w.emit(f'mul i64 {s.place()}, {self.size}')} to i32")
            pointer = memory.resolve(w.emit(f"add i32 {start}, {place}"), lane)
            write_fields(g, pointer, self.fields, [s.own(i + 1) for i in range(len(self.parts))])

        g.each_lane(body)


def _piece(size: int) -> ty.Type:
    """The type that is moved for a number of bytes."""
    if size in (1, 2, 4):
        return ty.int_type(8 * size)
    if size in (8, 12, 16):
        return ty.vec_type(size // 4, ty.I32)
    raise NotCovered(f"a copy of {size} bytes to LDS")


def _to_lds(b: Lowering, lds: Part, offset: int, parts: list[Part]) -> None:
    if parts[0].type != "i32":  # bytes and halves arrive as zero-extended words
        t = parts[0].type
        parts = b.apply(lambda v, a: [v.cast("zext", t, a, "i32")], parts, ["i32"])
    fields = [Field(4 * i, 4, "i32") for i in range(len(parts))]
    b.read([lds, *parts], b.add(LdsCopyStep(lds, offset, parts, fields, 4 * len(parts))))


def _moved(b: Lowering, address: Part, offset: int) -> Part:
    """An address plus a constant."""
    if not offset:
        return address
    t = address.type
    return b.apply(lambda v, a: [v.op("add", t, a, v.const(t, offset))], [address], [t])[0]


def _loaded(b: Lowering, space: int, address: Part, t: ty.Type) -> list[Part]:
    fields = fields_of(t)
    made = outputs_of(b, fields, address.uniform)
    b.read([address], b.add(Load(space, address, fields, ty.store_size(t), made)))
    return made


def load_to_lds(b: Lowering, inst: Inst) -> None:
    """``global.load.lds`` and ``load.to.lds``."""
    size, offset = (b.number(inst.operands[i], "a size or offset") for i in (2, 3))
    if getattr(inst.operands[0].type, "space", 1) == 7:
        source = b.parts(inst.operands[0])
        extra = Part("i32", True, -1, -1, str(offset))
        parts = buffer.step(b, inst, buffer.Range(source[:4], None, [source[4], extra]), _piece(size), None)
    else:
        parts = _loaded(b, 1, _moved(b, b.part(inst.operands[0]), offset), _piece(size))
    _to_lds(b, b.part(inst.operands[1]), offset, parts)


def buffer_to_lds(b: Lowering, inst: Inst, structured: bool) -> None:
    """``raw/struct.(ptr.)buffer.load.lds``."""
    size, offset = (b.number(inst.operands[i], "a size or offset") for i in (2, len(inst.operands) - 2))
    index = b.part(inst.operands[3]) if structured else None
    first = 4 if structured else 3
    offsets = [b.part(inst.operands[first]), b.part(inst.operands[first + 1]), Part("i32", True, -1, -1, str(offset))]
    rsrc = buffer.descriptor(b, b.parts(inst.operands[0]))
    parts = buffer.step(b, inst, buffer.Range(rsrc, index, offsets), _piece(size), None)
    _to_lds(b, b.part(inst.operands[1]), offset, parts)


def async_copy(to_lds: bool, size: int) -> Callable[[Lowering, Inst], None]:
    """``global.load.async.to.lds.*`` and ``global.store.async.from.lds.*``: every lane names both addresses."""

    def lower(b: Lowering, inst: Inst) -> None:
        offset, t = b.number(inst.operands[2], "an offset"), _piece(size)
        heap, lds = (_moved(b, b.part(o), offset) for o in inst.operands[:2])
        source, target, spaces = (heap, lds, (1, 3)) if to_lds else (lds, heap, (3, 1))
        parts = _loaded(b, spaces[0], source, t)
        b.read([target, *parts], b.add(Store(spaces[1], target, fields_of(t), size, parts)))

    return lower
