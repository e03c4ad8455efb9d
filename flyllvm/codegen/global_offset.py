"""Offsets into global memory, split into what the lanes of a wave share and what they do not.

A global access takes a 64-bit base from scalar registers, a 32-bit offset of each lane that is extended with zeros, and
a constant.  So a sum is taken apart: parts that all lanes share move the base, constants gather at the end, and what is
left of each lane stays in 32 bits where its range proves that it fits.  Elsewhere the sum is 64 bits wide: an access
then takes its whole address from vector registers.

A sum or product in 32 bits is taken apart where its range proves that it does not wrap.  In loops, where it pays most,
a sum of unknown range is too, if all but one of its parts are small: it differs from the wrapped sum only where that
is an index about 2**31 elements away, which no access means.
"""

from __future__ import annotations

from ..ir import lltype as ll, types as t
from .lower import Pointer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..ir.core import Value
    from ..ir.protocols import LLValue
    from .lower import Lowering

    #: A part of a sum: a value, how its 32 bits become 64 (``zext`` or ``sext``), and a positive factor.
    Term = tuple[Value, str, int]

#: Lane offsets stay below this many bytes to be 32 bits wide.
_NARROW = 1 << 31
#: Parts below this many elements are small.
_SMALL = 1 << 29


def moved_global(lw: Lowering, p: Pointer, offset: Value, size: int, align: int) -> Pointer:
    """A pointer into global memory some elements further.

    Units:
        ``size`` is that of an element in bytes, ``align`` bytes as well.
    """
    loose = lw.get(offset).level > 0 and lw.em.in_loop
    shared, own, count = _split(lw, (offset, _extension(offset), 1), loose)
    const = p.const + count * size * 8
    most = _most(own, size)
    if not p.base.uniform or most is None or most + (p.most or 0) >= _NARROW or (p.offset is not None and not p.most):
        # A sum in 64 bits goes into every lane's registers whole.
        terms = [*shared, *own] if count else [(offset, _extension(offset), 1)]
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


def _split(lw: Lowering, term: Term, loose: bool) -> tuple[list[Term], list[Term], int]:
    """(parts that lanes share, parts of each lane, constant) of a number of elements.

    With ``loose`` a sum of unknown range with small parts is taken apart too.
    """
    value, ext, factor = term
    made = lw.get(value)
    if isinstance(made.const, int) and (made.const >= 0 or ext == "sext" or value.type != t.I32):
        return [], [], made.const * factor
    if made.uniform and made.level == 0:
        return [term], [], 0
    parts = _parts(term, loose)
    if not parts:
        return ([term], [], 0) if made.uniform else ([], [term], 0)
    shared: list[Term] = []
    own: list[Term] = []
    const = 0
    for part in parts:
        more_shared, more_own, more = _split(lw, part, loose)
        shared += more_shared
        own += more_own
        const += more
    if const == 0 and not shared and _inner(value).type == t.I32:
        # Nothing to take out, and the sum exists already.
        return [], [term], 0
    return shared, own, const


def _parts(term: Term, loose: bool) -> list[Term]:
    """The summands of a sum, the one of a product with a constant; none where there is no such sum."""
    value, ext, factor = term
    op = value.op
    if op is None:
        return []
    inner = _inner(value)
    if inner is not value:
        return _parts((inner, "zext" if op.name == "arith.extui" else "sext", factor), loose)
    exact = value.type == t.I64 or (value.type == t.I32 and "nsw" in (op.attrs.get("overflow") or ()))
    if ext == "zext" and value.type == t.I32 and _extension(value) == "sext":
        return []  # extended as an unsigned number, which its parts are not
    if op.name == "arith.addi":
        loose = loose and ext == "sext" and factor == 1 and value.type == t.I32 and any(map(_is_small, op.operands))
        return [(part, _extension(part), factor) for part in op.operands] if exact or loose else []
    if exact and op.name in ("arith.muli", "arith.shli"):
        number = op.operands[1].static_value()
        if number is not None and 0 < number < (32 if op.name == "arith.shli" else 1 << 31):
            inner = op.operands[0]
            return [(inner, _extension(inner), factor * (1 << number if op.name == "arith.shli" else number))]
    return []


def _is_small(value: Value) -> bool:
    return value.range is not None and value.range[0] > -_SMALL and value.range[1] < _SMALL


def _inner(value: Value) -> Value:
    """What a 32-bit extension extends, or the value itself."""
    op = value.op
    if op is not None and op.name in ("arith.extui", "arith.extsi") and op.operands[0].type == t.I32:
        return op.operands[0]
    return value


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
    for value, _, factor in terms:
        if value.range is None or value.range[0] < 0:
            return None
        total += value.range[1] * factor
    return total * size


def _narrow(lw: Lowering, value: Value) -> LLValue:
    """A small number that is not negative, in 32 bits."""
    made = lw.get(_inner(value))
    return lw.em.cast("trunc", made, ll.I32) if made.type is not ll.I32 else made


def _narrow_sum(lw: Lowering, start: LLValue | None, terms: list[Term], size: int) -> LLValue:
    """Bytes of a sum in 32 bits, what loops do not move first."""
    em = lw.em
    total = start
    scaled = [_scale(lw, _narrow(lw, value), size * factor, "nuw nsw") for value, _, factor in terms]
    for part in sorted(scaled, key=_level):
        total = part if total is None else em.binary("add", total, part, "nsw nuw")
    return total if total is not None else em.const(ll.I32, 0)


def _level(value: LLValue) -> int:
    return value.level


def _wide_sum(lw: Lowering, terms: list[Term]) -> LLValue:
    """A sum in 64 bits; its small parts are added in 32."""
    em = lw.em
    small = [term for term in terms if _most([term], 1) is not None and term[0].type == t.I32]
    most = _most(small, 1)
    if len(small) < 2 or most is None or most >= _NARROW:
        small = []
    total = em.cast("zext", _narrow_sum(lw, None, small, 1), ll.I64) if small else None
    for term in terms:
        if term not in small:
            value, ext, factor = term
            part = _scale(lw, em.cast(ext, lw.get(value), ll.I64), factor, "")
            total = part if total is None else em.binary("add", total, part)
    return total if total is not None else em.const(ll.I64, 0)


def _wide_bytes(lw: Lowering, term: Term, size: int) -> LLValue:
    """Bytes of a number of elements in 64 bits; in 32 bits first where these hold it."""
    value, ext, factor = term
    most = _most([term], size)
    if most is not None and most < _NARROW:
        return lw.em.cast("zext", _scale(lw, _narrow(lw, value), size * factor, "nuw nsw"), ll.I64)
    return _scale(lw, lw.em.cast(ext, lw.get(value), ll.I64), size * factor, "")


def _scale(lw: Lowering, made: LLValue, size: int, flags: str) -> LLValue:
    em = lw.em
    if size & (size - 1) == 0:
        return em.binary("shl", made, em.const(made.type, size.bit_length() - 1), flags)
    return em.binary("mul", made, em.const(made.type, size), flags)
