"""Swizzles: permutations of indices and of coordinates that move bits with exclusive or."""

from __future__ import annotations

from ..errors import LayoutError
from .int_tuple import at, modes, normal, show

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .leaf import IntTuple, Leaf


#: Bits of the largest index, without its sign.
_INDEX_BITS = 63


class Frozen:
    """Base of the value classes: no attribute can be set after construction."""

    __slots__ = ()

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable: cannot set {name}")

    def _set(self, **fields: object) -> None:
        for name, value in fields.items():
            object.__setattr__(self, name, value)


class Swizzle(Frozen):
    """``S<m,b,s>``: ``x ^ (Y >> s)``, where Y is the m-bit field of x that starts at bit ``b + s``.

    A permutation of the indices: ``shift`` is at least 1 unless ``mask`` is 0 (the identity).

    Units:
        mask, base, shift: bits.
    """

    __slots__ = ("base", "mask", "shift")

    mask: int
    base: int
    shift: int

    def __init__(self, mask: int, base: int, shift: int) -> None:
        values = [normal(v) for v in (mask, base, shift)]
        if any(type(v) is not int or v < 0 for v in values):
            raise LayoutError(
                f"S<{show(values)[1:-1]}>: mask, base and shift are bit counts of at least 0",
                fix="pass three ints: Swizzle(3, 3, 3)",
            )
        _check_bits(f"S<{mask},{base},{shift}>", sum(values))
        if values[0] > 0 and values[2] == 0:
            raise LayoutError(
                f"S<{mask},{base},{shift}> is no permutation: with shift 0 it clears bits", fix="shift is at least 1"
            )
        self._set(mask=values[0], base=values[1], shift=values[2])

    def __call__(self, x: Leaf) -> Leaf:
        """The swizzled index."""
        if self.mask == 0:
            return x
        return x ^ ((x & (((1 << self.mask) - 1) << (self.base + self.shift))) >> self.shift)

    @property
    def is_static(self) -> bool:
        """Always true."""
        return True

    def __repr__(self) -> str:
        return f"S<{self.mask},{self.base},{self.shift}>"

    def __eq__(self, other: object) -> bool:
        return type(other) is Swizzle and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash((self.mask, self.base, self.shift))

    def __reduce__(self) -> tuple[object, ...]:
        return (Swizzle, (self.mask, self.base, self.shift))


class CoordSwizzle(Frozen):
    """``CS<m,bR,[..],bC,[..]>``: on a coordinate, ``col ^= ((row >> bR) & ((1<<m)-1)) << bC``.

    Args:
        mask: Number of bits that move.
        row_base: First bit taken from the row.
        row_path: Mode path of the row inside the coordinate.
        col_base: First bit changed in the column.
        col_path: Mode path of the column; not the row itself.
    """

    __slots__ = ("col_base", "col_path", "mask", "row_base", "row_path")

    mask: int
    row_base: int
    row_path: tuple[int, ...]
    col_base: int
    col_path: tuple[int, ...]

    def __init__(self, mask: int, row_base: int, row_path: object, col_base: int, col_path: object) -> None:
        m, rb, cb = normal(mask), normal(row_base), normal(col_base)
        rp, cp = modes(normal(row_path)), modes(normal(col_path))
        if any(type(v) is not int or v < 0 for v in (m, rb, cb, *rp, *cp)) or not rp or not cp:
            raise LayoutError(
                f"CS<{m},{rb},{rp},{cb},{cp}>: bit counts and mode paths hold ints of at least 0",
                fix="pass ints, and tuples of ints as paths: CoordSwizzle(2, 0, (0,), 1, (1,))",
            )
        _check_bits(f"CS<{m},{rb},{rp},{cb},{cp}>", m + max(rb, cb))
        if m > 0 and (rp[: len(cp)] == cp or cp[: len(rp)] == rp):
            raise LayoutError(f"CS<{m},{rb},{rp},{cb},{cp}>: row and column must be different modes")
        self._set(mask=m, row_base=rb, row_path=rp, col_base=cb, col_path=cp)

    def __call__(self, coord: IntTuple) -> IntTuple:
        """The swizzled coordinate."""
        row, col = at(coord, self.row_path), at(coord, self.col_path)
        if isinstance(row, tuple) or isinstance(col, tuple):
            raise LayoutError(f"{self} on {show(coord)}: row {show(row)} and column {show(col)} must be integers")
        return _replace(
            coord, self.col_path, col ^ (((row >> self.row_base) & ((1 << self.mask) - 1)) << self.col_base)
        )

    @property
    def is_static(self) -> bool:
        """Always true."""
        return True

    def __repr__(self) -> str:
        row, col = (",".join(map(str, p)) for p in (self.row_path, self.col_path))
        return f"CS<{self.mask},{self.row_base},[{row}],{self.col_base},[{col}]>"

    def __eq__(self, other: object) -> bool:
        return type(other) is CoordSwizzle and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(repr(self))

    def __reduce__(self) -> tuple[object, ...]:
        return (CoordSwizzle, (self.mask, self.row_base, self.row_path, self.col_base, self.col_path))


def _check_bits(what: str, highest: int) -> None:
    """Refuses fields past the bits of an index; ``highest`` is the bit behind the highest field."""
    if highest > _INDEX_BITS:
        raise LayoutError(
            f"{what} moves bits up to bit {highest - 1}", fix=f"an index has {_INDEX_BITS} bits; stay below that"
        )


def _replace(t: IntTuple, path: tuple[int, ...], value: Leaf) -> IntTuple:
    if not path or not isinstance(t, tuple):
        return value
    return (*t[: path[0]], _replace(t[path[0]], path[1:], value), *t[path[0] + 1 :])
