"""Offsets into global memory, split into what the lanes of a wave share and what they do not.

A global access takes a 64-bit base from scalar registers, a 32-bit offset of each lane that is extended with zeros, and
a constant.  So a sum is taken apart: parts that all lanes share move the base, constants gather at the end, and what is
left of each lane stays in 32 bits where its range proves that it fits.  Elsewhere the sum is 64 bits wide: an access then
takes its whole address from vector registers.  Only sums whose parts may be widened one by one are taken apart: those in
64 bits, and those in 32 bits that are known not to wrap.
"""

from __future__ import annotations

from ..ir import lltype as ll, types as t
from .lower import Pointer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..ir.core import Value
    from ..ir.protocols import LLValue
    from .lower import Lowering

    #: A part of a sum, and how its 32 bits become 64: ``zext`` or ``sext``.
    Term = tuple[Value, str]

#: Lane offsets stay below this many bytes to be 32 bits wide.
_NARROW = 1 << 31


def moved_global(lw: Lowering, p: Pointer, offset: Value, size: int, align: int) -> Pointer:
    """A pointer into global memory some elements further.

    Units:
        ``size`` is that of an element in bytes, ``align`` bytes as well.
    """
    shared, own, count = _split(lw, offset, _extension(offset))
    const = p.const + count * size * 8
    most = _most(own, size)
    if not p.base.uniform or most is None or most + (p.most or 0) >= _NARROW or (p.offset is not None and not p.most):
        # A sum in 64 bits goes into every lane's registers whole.
        terms = [*shared, *own] if count else [(offset, _extension(offset))]
        moved = _scale(lw, _wide_sum(lw, terms), size, "")
        return add_wide(lw, Pointer(p.base, p.offset, const, align, p.scalar, p.most), moved, align)
    scalar = p.scalar
    for term in shared:
        scalar = _with_scalar(lw, scalar, _wide_bytes(lw, term, size))
    if not own:
        return Pointer(p.base, p.offset, const, align, scalar, p.most)
    return Pointer(p.base, _narrow_sum(lw, p.offset, own, size), const, align, scalar, most + (p.most or 0))


def add_wide(lw: Lowering, p: Pointer, moved: LLValue, align: int) -> Pointer:
    """A pointer into global memory some bytes further."""
    wide = wide_offset(lw, p)
    moved = lw.em.cast("sext", moved, ll.I64)
    return Pointer(p.base, moved if wide is None else lw.em.binary("add", wide, moved), p.const, align, p.scalar)


def whole_offset(lw: Lowering, p: Pointer) -> LLValue | None:
    """The run-time offset of a global pointer from its base as one i64."""
    total = wide_offset(lw, p)
    for part in reversed(p.scalar):
        total = part if total is None else lw.em.binary("add", part, total)
    return total


def wide_offset(lw: Lowering, p: Pointer) -> LLValue | None:
    """The offset of each lane as an i64."""
    return None if p.offset is None else lw.em.cast("sext" if p.most is None else "zext", p.offset, ll.I64)


# --- taking a sum apart ---------------------------------------------------------------------------


def _extension(value: Value) -> str:
    return "zext" if value.range is not None and value.range[0] >= 0 else "sext"


def _split(lw: Lowering, value: Value, ext: str) -> tuple[list[Term], list[Term], int]:
    """(parts that lanes share, parts of each lane, constant) of a number of elements."""
    made = lw.get(value)
    if isinstance(made.const, int) and (made.const >= 0 or ext == "sext" or value.type != t.I32):
        return [], [], made.const
    if made.uniform and made.level == 0:
        return [(value, ext)], [], 0
    parts = _parts(value, ext)
    if parts is None:
        return ([(value, ext)], [], 0) if made.uniform else ([], [(value, ext)], 0)
    shared: list[Term] = []
    own: list[Term] = []
    const = 0
    for part, how in parts:
        more_shared, more_own, more = _split(lw, part, how)
        shared += more_shared
        own += more_own
        const += more
    if const == 0 and not shared and _whole(value) is not None:
        # Nothing to take out: the sum exists already.
        return [], [(value, ext)], 0
    return shared, own, const


def _parts(value: Value, ext: str) -> list[Term] | None:
    """The summands of a sum that may be widened one by one; behind an extension, those of what is extended."""
    op = value.op
    if op is None:
        return None
    if op.name in ("arith.extui", "arith.extsi") and op.operands[0].type == t.I32:
        return _parts(op.operands[0], "zext" if op.name == "arith.extui" else "sext")
    if op.name != "arith.addi":
        return None
    if value.type == t.I32:
        overflow = op.attrs.get("overflow") or ()
        if ("nuw" if ext == "zext" else "nsw") not in overflow:
            return None
    elif value.type != t.I64:
        return None
    return [(part, ext if part.type == t.I32 else _extension(part)) for part in op.operands]


def _whole(value: Value) -> Value | None:
    """The value itself where it is 32 bits wide, or what it extends."""
    op = value.op
    if op is not None and op.name in ("arith.extui", "arith.extsi"):
        value = op.operands[0]
    return value if value.type == t.I32 else None


# --- putting it together --------------------------------------------------------------------------


def _with_scalar(lw: Lowering, scalar: tuple[LLValue, ...], more: LLValue) -> tuple[LLValue, ...]:
    """Byte offsets that lanes share, one per nesting depth, with one more."""
    for i, part in enumerate(scalar):
        if part.level == more.level:
            return (*scalar[:i], lw.em.binary("add", part, more), *scalar[i + 1 :])
        if part.level > more.level:
            return (*scalar[:i], more, *scalar[i:])
    return (*scalar, more)


def _most(terms: list[Term], size: int) -> int | None:
    """The largest that a sum of elements can be, in bytes, where no part is negative."""
    total = 0
    for value, _ in terms:
        if value.range is None or value.range[0] < 0:
            return None
        total += value.range[1]
    return total * size


def _narrow(lw: Lowering, value: Value) -> LLValue:
    """A small number that is not negative, in 32 bits."""
    inner = _whole(value)
    made = lw.get(value if inner is None else inner)
    return lw.em.cast("trunc", made, ll.I32) if made.type is not ll.I32 else made


def _narrow_sum(lw: Lowering, start: LLValue | None, terms: list[Term], size: int) -> LLValue:
    """Bytes of a sum in 32 bits; parts of one nesting depth are scaled together."""
    em = lw.em
    sums: dict[int, LLValue] = {}
    for value, _ in terms:
        made = _narrow(lw, value)
        before = sums.get(made.level)
        sums[made.level] = made if before is None else em.binary("add", before, made, "nsw nuw")
    total = start
    for level in sorted(sums):
        scaled = _scale(lw, sums[level], size, "nuw nsw")
        total = scaled if total is None else em.binary("add", total, scaled, "nsw nuw")
    return total if total is not None else em.const(ll.I32, 0)


def _wide_sum(lw: Lowering, terms: list[Term]) -> LLValue:
    """A sum in 64 bits; its small parts are added in 32."""
    em = lw.em
    small = [term for term in terms if _most([term], 1) is not None and _whole(term[0]) is not None]
    most = _most(small, 1)
    if len(small) < 2 or most is None or most >= _NARROW:
        small = []
    total = em.cast("zext", _narrow_sum(lw, None, small, 1), ll.I64) if small else None
    for term in terms:
        if term not in small:
            value, ext = term
            part = em.cast(ext, lw.get(value), ll.I64)
            total = part if total is None else em.binary("add", total, part)
    return total if total is not None else em.const(ll.I64, 0)


def _wide_bytes(lw: Lowering, term: Term, size: int) -> LLValue:
    """Bytes of a number of elements in 64 bits; in 32 bits first where these hold it."""
    value, ext = term
    most = _most([term], size)
    if most is not None and most < _NARROW:
        return lw.em.cast("zext", _scale(lw, _narrow(lw, value), size, "nuw nsw"), ll.I64)
    return _scale(lw, lw.em.cast(ext, lw.get(value), ll.I64), size, "")


def _scale(lw: Lowering, made: LLValue, size: int, flags: str) -> LLValue:
    em = lw.em
    if size & (size - 1) == 0:
        return em.binary("shl", made, em.const(made.type, size.bit_length() - 1), flags)
    return em.binary("mul", made, em.const(made.type, size), flags)
