"""Lowering of pointers, views and memory: the ``fly`` dialect without its atoms."""

from __future__ import annotations

from math import gcd

from ..ir import lltype as ll, types as t
from ..ir.protocols import LLValue
from .global_offset import add_wide, moved_global, wide_offset
from .lower import Pointer, pointer_type, stored_bits
from .lower_vector import held

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..ir.core import Op, Value
    from .lower import Handler, Lowering

#: Spaces whose offsets are counted in 32 bits.
SMALL_SPACES = ("shared", "register", "buffer_desc")


def _nothing(lw: Lowering, op: Op) -> None:
    """Layouts are part of types, or were turned into arithmetic before."""


def _int_tuple(lw: Lowering, op: Op) -> None:
    lw.values[op.results[0]] = tuple([lw.get(o) for o in op.operands])


def _make_view(lw: Lowering, op: Op) -> None:
    if isinstance(op.results[0].type, t.MemRefType):
        lw.values[op.results[0]] = lw.pointer(op.operands[0])


def _same_pointer(lw: Lowering, op: Op) -> None:
    lw.values[op.results[0]] = lw.pointer(op.operands[0])


# --- new pointers ---------------------------------------------------------------------------------


def _make_ptr(lw: Lowering, op: Op) -> None:
    em = lw.em
    type_ = op.results[0].type
    if isinstance(type_, t.PtrType) and type_.space == "shared":
        name = em.module.add_lds(op.attrs.get("symbol") or "", op.attrs["allocBytes"], op.attrs["allocAlign"], op.loc)
        base = LLValue(pointer_type(lw, type_), name, None, True, 0)
        lw.values[op.results[0]] = Pointer(base)
        return
    args = [full_pointer(lw, op.operands[0]), *[lw.get(o) for o in op.operands[1:]]]
    args[2] = _scalar_records(lw, op.operands[2], args[2])
    made = em.pure_intrinsic("amdgcn.make.buffer.rsrc.p8.p1", ll.ptr(8), args)
    lw.values[op.results[0]] = Pointer(made)


def _scalar_records(lw: Lowering, value: Value, records: LLValue) -> LLValue:
    """The record count, kept in scalar registers where all lanes agree on it.

    LLVM clamps even uniform numbers in vector registers, and a descriptor there is read lane by lane in a loop.
    """
    inner = value.op.operands[0] if value.op is not None and value.op.name == "arith.extui" else None
    if not records.uniform or records.const is not None or inner is None or inner.type != t.I32:
        return records
    narrow = lw.em.pure_intrinsic("amdgcn.readfirstlane.i32", ll.I32, [lw.get(inner)])
    return lw.em.cast("zext", narrow, ll.I64)


def _dyn_shared(lw: Lowering, op: Op) -> None:
    name = lw.em.module.use_dynamic_lds()
    type = ll.ptr(lw.em.module.backend.space("shared"))
    lw.values[op.results[0]] = Pointer(LLValue(type, name, None, True, 0))


def _alloca(lw: Lowering, op: Op) -> None:
    from ..layout import cosize

    type_ = op.results[0].type
    if not isinstance(type_, t.MemRefType):
        raise lw.em.fail(f"alloca of {type_}", "allocate a register memref")
    count = int(cosize(type_.layout))
    bits = stored_bits(type_.elem)
    held_type = type_.elem.storage if bits % 8 == 0 and type_.elem.bits == bits else ll.I8
    # An access may reach whole registers: the slot is as aligned as its largest power of two, up to 16 bytes.
    size = -(-count * bits // 8)
    align = max(type_.ptr.align & -type_.ptr.align, min(16, size & -size))
    slot = lw.em.alloca(ll.array(size * 8 // held_type.bits, held_type), align)
    lw.values[op.results[0]] = Pointer(slot)


def _int_to_ptr(lw: Lowering, op: Op) -> None:
    type_ = op.results[0].type
    if isinstance(type_, t.PtrType):
        lw.values[op.results[0]] = Pointer(lw.em.cast("inttoptr", lw.get(op.operands[0]), pointer_type(lw, type_)))


def _ptr_to_int(lw: Lowering, op: Op) -> None:
    pointer = full_pointer(lw, op.operands[0])
    lw.values[op.results[0]] = lw.em.cast("ptrtoint", pointer, t.storage(op.results[0].type))


def full_pointer(lw: Lowering, value: Value) -> LLValue:
    """The pointer as one LLVM value, its swizzle not applied."""
    p = lw.pointer(value)
    type_ = value.type.ptr if isinstance(value.type, t.MemRefType) else value.type
    space = type_.space if isinstance(type_, t.PtrType) else "generic"
    if p.const % 8:
        raise lw.em.fail(f"the address of {type_} lies inside a byte", "use an element that starts at a whole byte")
    offset = p.offset if space in SMALL_SPACES else wide_offset(lw, p)
    return lw.em.gep(lw.shared_base(p), lw.em.index(space, offset), p.const // 8)


# --- offsets --------------------------------------------------------------------------------------


def _add_offset(lw: Lowering, op: Op) -> None:
    type_ = op.results[0].type
    if not isinstance(type_, t.PtrType):
        raise lw.em.fail(f"add_offset of {type_}", "offset a pointer")
    p = lw.pointer(op.operands[0])
    bits = stored_bits(type_.elem)
    lw.values[op.results[0]] = moved(lw, p, op.operands[1], bits, type_)


def moved(lw: Lowering, p: Pointer, offset: Value, bits: int, type_: t.PtrType) -> Pointer:
    """A pointer some elements further."""
    value, divisibility, range_ = _offset_leaf(lw, offset)
    if isinstance(value, int):
        return Pointer(p.base, p.offset, p.const + value * bits, p.offset_align, p.scalar, p.most)
    align = divisibility * bits // 8 if divisibility * bits >= 8 else 1
    align &= -align
    if p.offset is not None or p.scalar:
        align = min(p.offset_align, align)
    if type_.space not in SMALL_SPACES:
        number = _number(offset)
        if number is not None and bits % 8 == 0:
            return moved_global(lw, p, number, bits // 8, align)
        return add_wide(lw, p, _scaled(lw, value, divisibility, range_, bits, type_), align)
    const = 0
    # In 32-bit arithmetic the constant of a sum can be split off exactly; it becomes an immediate.
    inner = offset.op
    if inner is not None and inner.name == "arith.addi":
        last = inner.operands[1].static_value()
        rest = lw.values.get(inner.operands[0])
        if last is not None and isinstance(rest, LLValue) and last * bits % 8 == 0:
            value, const = rest, last
            divisibility, range_ = inner.operands[0].divisibility, inner.operands[0].range
    chosen = None if const else _scaled_parts(lw, offset, bits, type_.space == "buffer_desc")
    scaled = _scaled(lw, value, divisibility, range_, bits, type_) if chosen is None else chosen
    if p.offset is not None:
        scaled = lw.em.binary("add", p.offset, scaled)
    return Pointer(p.base, scaled, p.const + const * bits, align)


def _scaled_parts(lw: Lowering, offset: Value, bits: int, buffer: bool) -> LLValue | None:
    """Bytes of an offset that is a sum, or a choice between a sum and a constant, with the scaling inside.

    The scaled parts are shared by neighbouring offsets, and a scaled sum is a plain induction variable of its loop.
    32-bit arithmetic wraps, so the result is the same.  ``None`` for other offsets.
    """
    op = offset.op
    if op is None or bits % 8 or bits == 8 or offset.type != t.I32:
        return None
    if op.name == "arith.addi":
        return _scaled_sum(lw, offset, bits // 8, buffer)
    if op.name != "arith.select":
        return None
    cond, a, b = op.operands
    if a.static_value() is None and b.static_value() is None:
        return None
    return lw.em.select(lw.get(cond), *[_scaled_sum(lw, v, bits // 8, buffer) for v in (a, b)])


def _scaled_sum(lw: Lowering, value: Value, size: int, buffer: bool) -> LLValue:
    key = (value, size, buffer)
    done = lw.scaled.get(key)
    if done is None:
        done = _scale(lw, value, size, buffer)
        # A value of the kernel's body can be used from here on everywhere; one of a branch or loop cannot.
        if done.level == 0:
            lw.scaled[key] = done
    return done


def _scale(lw: Lowering, value: Value, size: int, buffer: bool) -> LLValue:
    known = value.static_value()
    if known is not None:
        # As a signed 32-bit number, which is how the wrapped product reads.
        return lw.em.const(ll.I32, (known * size + (1 << 31)) % (1 << 32) - (1 << 31))
    op = value.op
    if (
        op is not None
        and op.name == "arith.addi"
        and all(v.static_value() is not None or v in lw.values for v in op.operands)
    ):
        a, b = op.operands
        return lw.em.binary("add", _scaled_sum(lw, a, size, buffer), _scaled_sum(lw, b, size, buffer))
    if buffer and size & (size - 1) == 0:
        return lw.em.binary("shl", lw.get(value), lw.em.const(ll.I32, size.bit_length() - 1))
    # LLVM sees through shifts what parts of LDS do not overlap, and moves writes up to the loads they wait for.
    return lw.em.binary("mul", lw.get(value), lw.em.const(ll.I32, size))


def _number(offset: Value) -> Value | None:
    """The number that an offset is; ``None`` where it is not known which."""
    if not isinstance(offset.type, t.IntTupleType):
        return offset
    op = offset.op
    return op.operands[0] if op is not None and op.name == "fly.make_int_tuple" and len(op.operands) == 1 else None


def _offset_leaf(lw: Lowering, offset: Value) -> tuple[int | LLValue, int, tuple[int, int] | None]:
    """(value, divisibility, range) of an offset: a number, or an int tuple of one leaf."""
    if isinstance(offset.type, t.IntTupleType):
        leaf = offset.type.value
        while isinstance(leaf, tuple) and len(leaf) == 1:
            leaf = leaf[0]
        if isinstance(leaf, int):
            return leaf, 1, None
        leaves = lw.values.get(offset)
        if not isinstance(leaves, tuple) or len(leaves) != 1:
            raise lw.em.fail(f"an offset of type {offset.type}", "use one number, or an int tuple of one leaf")
        return leaves[0], int(getattr(leaf, "divisibility", 1)), None
    value = lw.get(offset)
    if isinstance(value.const, int):
        return value.const, 1, None
    return value, offset.divisibility, offset.range


def _scaled(
    lw: Lowering, value: LLValue, divisibility: int, range_: tuple[int, int] | None, bits: int, type_: t.PtrType
) -> LLValue:
    """Elements to bytes.

    In 64-bit spaces an i32 number of elements is widened first, with its sign, so that no product is cut; where the
    range is known to stay small the product is formed in 32 bits and zero-extended, which the hardware adds for free.
    """
    em = lw.em
    wide = type_.space not in SMALL_SPACES and value.type is ll.I32
    small = range_ is not None and range_[0] >= 0 and range_[1] * bits < 1 << 34
    if wide and not small:
        value = em.cast("zext" if range_ is not None and range_[0] >= 0 else "sext", value, ll.I64)
    if bits % 8:
        group = 8 // gcd(bits, 8)
        if divisibility % group:
            raise em.fail(
                f"a run-time offset of {type_.elem} elements, a multiple of {divisibility}, may end inside a byte",
                f"{type_.elem} is packed: use an offset that is a multiple of {group} (fx.assume says so)",
            )
        value = em.binary("ashr", value, em.const(value.type, group.bit_length() - 1), "exact")
        bits *= group
    size = bits // 8
    flags = "nuw nsw" if wide and small else ""
    if size & (size - 1) == 0:
        value = em.binary("shl", value, em.const(value.type, size.bit_length() - 1), flags)
    else:
        value = em.binary("mul", value, em.const(value.type, size), flags)
    return em.cast("zext", value, ll.I64) if wide and small else value


# --- accesses -------------------------------------------------------------------------------------


def _load(lw: Lowering, op: Op) -> None:
    type_ = op.results[0].type
    mem = lw.memory(op.operands[0])
    mem.count = t.count_of(type_)
    made = lw.em.load(mem, t.storage(type_))
    lw.values[op.results[0]] = held(lw, made, type_)


def _store(lw: Lowering, op: Op) -> None:
    mem = lw.memory(op.operands[1])
    mem.count = t.count_of(op.operands[0].type)
    lw.em.store(lw.get(op.operands[0]), mem)


def _atomic(lw: Lowering, op: Op) -> None:
    em = lw.em
    value, mem = lw.get(op.operands[0]), lw.memory(op.operands[1])
    size = value.type.bits // 8
    if em.alignment(mem) < size:
        raise em.fail(
            f"an atomic update of {size} bytes at a pointer aligned to {em.alignment(mem)}",
            f"atomics need natural alignment: promise {size} bytes (align= of the argument)",
        )
    pointer = em.address(mem, size)
    scope = op.attrs.get("syncscope") or ""
    text = f'syncscope("{scope}") ' if scope else ""
    rhs = (
        f"atomicrmw {op.attrs['kind']} {pointer.type.text} {pointer.text}, {value.type.text} {value.text} "
        f"{text}monotonic, align {size}"
    )
    lw.values[op.results[0]] = em.value(value.type, rhs)


TABLE: dict[str, Handler] = {
    "fly.static": _nothing,
    "fly.make_layout": _nothing,
    "fly.make_composed_layout": _nothing,
    "fly.make_int_tuple": _int_tuple,
    "fly.make_view": _make_view,
    "fly.get_iter": _same_pointer,
    "fly.apply_swizzle": _same_pointer,
    "fly.recast_iter": _same_pointer,
    "fly.make_ptr": _make_ptr,
    "fly.get_dyn_shared": _dyn_shared,
    "fly.memref.alloca": _alloca,
    "fly.inttoptr": _int_to_ptr,
    "fly.ptrtoint": _ptr_to_int,
    "fly.add_offset": _add_offset,
    "fly.ptr.load": _load,
    "fly.ptr.store": _store,
    "fly.atomic_rmw": _atomic,
}
