"""Which register memory can become values, and how it is cut into cells."""

from __future__ import annotations

from bisect import bisect_right

from ..ir import types as t
from ..ir.ops_atoms import copy_payload, mma_payload
from ..layout import ComposedLayout, coalesce, cosize, is_static

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..ir.core import Block, Kernel, Op, Value


class Root:
    """One register allocation of ``size`` elements, cut into cells."""

    __slots__ = ("accesses", "elem", "ok", "size", "starts")

    def __init__(self, elem: t.ScalarType, size: int) -> None:
        self.elem = elem
        self.size = size
        self.ok = True
        self.accesses: set[tuple[int, int]] = set()
        self.starts: list[int] = []

    def cut(self) -> None:
        """Puts a cell boundary at both ends of every vector access; scalar-only parts become scalars."""
        bounds = {0, self.size}
        covered = bytearray(self.size + 1)
        for offset, count in self.accesses:
            if count > 1:
                bounds.update((offset, offset + count))
                covered[offset : offset + count] = b"\1" * count
        # Elements that no vector access touches stand alone.
        for i in range(self.size):
            if not covered[i]:
                bounds.update((i, i + 1))
        self.starts = sorted(bounds)

    def cell_at(self, offset: int, count: int) -> int | None:
        """The cell that is exactly this run of elements, if there is one."""
        starts = self.starts
        index = bisect_right(starts, offset) - 1
        exact = starts[index] == offset and index + 1 < len(starts) and starts[index + 1] == offset + count
        return index if exact else None

    def cell_type(self, index: int) -> t.Type:
        """Type of a cell: a scalar, or a vector."""
        return t.value_type(self.starts[index + 1] - self.starts[index], self.elem)

    def cells_of(self, offset: int, count: int) -> Iterator[tuple[int, int, int]]:
        """(index, start, length) of the cells that overlap a run of elements."""
        index = bisect_right(self.starts, offset) - 1
        while index + 1 < len(self.starts) and self.starts[index] < offset + count:
            yield index, self.starts[index], self.starts[index + 1] - self.starts[index]
            index += 1


#: Dialects whose operations take numbers and vectors only.
_NUMBERS = ("arith.", "vector.", "math.")


class Registers:
    """Register memory of a kernel: roots, the place every pointer names, cells written by regions.

    Attributes:
        cells: (root, cell) of the views of promoted roots that are exactly one cell, by ``id`` of the view.
    """

    def __init__(self, kernel: Kernel) -> None:
        self._places: dict[int, tuple[Root, int] | None] = {}
        self._spans: dict[int, tuple[Root, int, int] | None] = {}
        self._roots: dict[int, Root] = {}
        self._written: dict[int, list[tuple[Root, int, int]]] = {}
        self._together: dict[tuple[Root, ...], None] = {}
        self._accessed: set[int] = set()
        self._counts: dict[object, int | None] = {}
        self._block(kernel.body)
        self._spread()
        for root in self._roots.values():
            if root.ok:
                root.cut()
        self.cells: dict[int, tuple[Root, int]] = {}
        for view, span in self._spans.items():
            if span is not None and span[0].ok:
                cell = span[0].cell_at(span[1], span[2])
                if cell is not None:
                    self.cells[view] = (span[0], cell)

    def kept(self) -> int:
        """How many roots stay in memory."""
        return sum(not root.ok for root in self._roots.values())

    def root_of(self, memref: Value) -> Root | None:
        """The root an ``alloca`` made, if it is promoted."""
        root = self._roots.get(id(memref))
        return root if root is not None and root.ok else None

    def place(self, ptr: Value) -> tuple[Root, int] | None:
        """(root, element) a pointer names, if the root is promoted."""
        found = self._places.get(id(ptr))
        return found if found is not None and found[0].ok else None

    def span(self, memref: Value) -> tuple[Root, int, int] | None:
        """(root, first element, count) a contiguous view covers, if the root is promoted."""
        found = self._spans.get(id(memref))
        return found if found is not None and found[0].ok else None

    def written(self, op: Op) -> list[tuple[Root, int]]:
        """Cells that the regions of ``op`` write, in a fixed order."""
        cells: dict[tuple[Root, int], None] = {}
        for region in op.regions:
            for inner in region.walk():
                for root, offset, count in self._written.get(id(inner), ()):
                    if root.ok:
                        for index, _, _ in root.cells_of(offset, count):
                            cells[(root, index)] = None
        return list(cells)

    # --- the analysis ----------------------------------------------------------------------------

    def _block(self, block: Block) -> None:
        visitor = _VISITORS.get
        for op in block.ops:
            name = op.name
            handler = visitor(name)
            if handler is not None:
                handler(self, op)
            elif not name.startswith(_NUMBERS):
                for v in op.operands:
                    self._spoil(v)
                for region in op.regions:
                    self._block(region)

    def _spread(self) -> None:
        """Operands of one mma call are promoted together or not at all."""
        changed = True
        while changed:
            changed = False
            for group in self._together:
                if any(r.ok for r in group) and not all(r.ok for r in group):
                    changed = True
                    for r in group:
                        r.ok = False

    def _spoil(self, v: Value) -> None:
        """Memory reached through ``v`` is used in a way that needs an address."""
        if not isinstance(v.type, (t.PtrType, t.MemRefType)):
            return
        for found in (self._places.get(id(v)), self._spans.get(id(v))):
            if found is not None:
                found[0].ok = False
        if id(v) in self._roots:
            self._roots[id(v)].ok = False

    def _alloca(self, op: Op) -> None:
        type_ = op.result.type
        if isinstance(type_, t.MemRefType):
            root = Root(type_.elem, int(cosize(type_.layout)))
            self._roots[id(op.result)] = root
            count = self._count(type_)
            if count is not None:
                self._spans[id(op.result)] = (root, 0, count)

    def _count(self, type_: t.MemRefType) -> int | None:
        """Elements of a memref that is one run, see ``contiguous``."""
        layout = type_.layout
        if layout in self._counts:
            return self._counts[layout]
        count = self._counts[layout] = contiguous(layout)
        return count

    def _iter(self, op: Op) -> None:
        memref = op.operands[0]
        root = self._roots.get(id(memref))
        span = self._spans.get(id(memref))
        if root is not None:
            self._places[id(op.result)] = (root, 0)
        elif span is not None:
            self._places[id(op.result)] = span[:2]
        else:
            place = self._places.get(id(memref))
            if place is not None:  # a view that is not contiguous
                self._places[id(op.result)] = place

    def _offset(self, op: Op) -> None:
        at = self._places.get(id(op.operands[0]))
        if at is not None:
            known = op.operands[1].static_value()
            if known is None:
                at[0].ok = False
            else:
                self._places[id(op.results[0])] = (at[0], at[1] + known)

    def _view(self, op: Op) -> None:
        at = self._places.get(id(op.operands[0]))
        if at is None:
            return
        result = op.results[0]
        if isinstance(result.type, t.MemRefType):
            count = self._count(result.type)
            if count is None:
                # A view that is not contiguous only matters when an atom uses it: kept as a place.
                self._places[id(result)] = at
            else:
                self._spans[id(result)] = (*at, count)

    def _access(self, op: Op, at: tuple[Root, int] | None, count: int, write: bool) -> None:
        if at is None:
            return
        root, offset = at
        if not 0 <= offset <= root.size - count:
            raise op.fail(
                f"elements {offset} to {offset + count - 1} of register memory with {root.size}",
                "stay inside the fragment",
            )
        root.accesses.add((offset, count))
        if write:
            self._written.setdefault(id(op), []).append((root, offset, count))

    def _load(self, op: Op) -> None:
        self._access(op, self._places.get(id(op.operands[0])), t.count_of(op.result.type), False)

    def _store(self, op: Op) -> None:
        self._access(op, self._places.get(id(op.operands[1])), t.count_of(op.operands[0].type), True)
        self._spoil(op.operands[0])

    def _atom(self, op: Op, payload: object, views: list[tuple[Value, bool]]) -> None:
        has_ssa = hasattr(payload, "emit_atom_call_ssa")
        for memref, write in views:
            span = self._spans.get(id(memref))
            if span is None or not has_ssa:
                self._spoil(memref)
            else:
                self._access(op, span[:2], span[2], write)

    def _copy(self, op: Op) -> None:
        views = [(op.operands[1], False), (op.operands[2], True)] + [(p, False) for p in op.operands[3:]]
        self._atom(op, copy_payload(op), views)

    def _mma(self, op: Op) -> None:
        _, d, a, b, c = op.operands
        get = self._spans.get
        of_d, of_a, of_b, of_c = get(id(d)), get(id(a)), get(id(b)), get(id(c))
        if of_d is None or of_a is None or of_b is None or of_c is None:
            self._atom(op, mma_payload(op).op, [(d, True), (a, False), (b, False), (c, False)])
            for v in (d, a, b, c):
                self._spoil(v)
            self._together[tuple([span[0] for span in (of_d, of_a, of_b, of_c) if span is not None])] = None
            return
        self._together[(of_d[0], of_a[0], of_b[0], of_c[0])] = None
        views = (id(d), id(a), id(b), id(c))
        if self._accessed.issuperset(views) and hasattr(mma_payload(op).op, "emit_atom_call_ssa"):
            # Unrolled calls share their views: these are inside their roots.
            self._written[id(op)] = [of_d]
            return
        self._atom(op, mma_payload(op).op, [(d, True), (a, False), (b, False), (c, False)])
        self._accessed.update(views)


def contiguous(layout: object) -> int | None:
    """Elements of a plain static layout that is one run of stride 1 (or one element), else ``None``."""
    if isinstance(layout, ComposedLayout) or not is_static(layout):
        return None
    flat = coalesce(layout)
    if isinstance(flat.shape, tuple):
        return None
    return int(flat.shape) if flat.stride == 1 or flat.shape == 1 else None


_VISITORS = {
    "fly.memref.alloca": Registers._alloca,
    "fly.get_iter": Registers._iter,
    "fly.add_offset": Registers._offset,
    "fly.make_view": Registers._view,
    "fly.ptr.load": Registers._load,
    "fly.ptr.store": Registers._store,
    "fly.copy_atom_call": Registers._copy,
    "fly.mma_atom_call": Registers._mma,
}
