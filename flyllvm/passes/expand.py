"""Stage fly to stage atoms: whole copies and gemms become atom calls, memref accesses pointer accesses."""

from __future__ import annotations

from ..errors import FlyError, VerifyError
from ..ir import types as t
from ..layout import ComposedLayout, Layout, Swizzle, coalesce, crd2idx, divides, is_static, logical_divide, size
from .rewrite import Rewriter
from .traversal import gemm_steps
from .views import view_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..ir.builder import Builder
    from ..ir.core import Kernel, Op, Value
    from ..target import Target


def expand(kernel: Kernel, target: Target) -> Kernel:
    """Expands ``fly.copy``, ``fly.gemm`` and memref accesses.

    Raises:
        VerifyError: Shapes do not fit the atom, or a mode to unroll is known at run time only.
    """
    done = Expander(kernel, target).run()
    done.attrs["stage"] = "atoms"
    return done


class Expander(Rewriter):
    """The rewriter behind ``expand``."""

    def __init__(self, kernel: Kernel, target: Target) -> None:
        super().__init__(kernel, target)
        # The views of atom calls, by the block that they are made in, pointer and layout: unrolled steps share them.
        self._views: dict[tuple[Any, ...], dict[Any, Value]] = {}
        self.handlers = {
            "fly.copy": self._copy,
            "fly.gemm": self._gemm,
            "fly.memref.load": self._load,
            "fly.memref.store": self._store,
            "fly.memref.load_vec": self._load_vec,
            "fly.memref.store_vec": self._store_vec,
        }

    # --- memref accesses -------------------------------------------------------------------------

    def _element(self, memref: Value, index: Value, op: Op) -> Value:
        ptr, layout = view_of(self.b, memref)
        coord = _coordinate(index)
        return self.b.add_offset(ptr, _offset(crd2idx(coord, layout), op))

    def _load(self, op: Op) -> None:
        with self.b:
            self.replace(op.result, self.b.ptr_load(self._element(op.operands[0], op.operands[1], op)))

    def _store(self, op: Op) -> None:
        with self.b:
            self.b.ptr_store(op.operands[0], self._element(op.operands[1], op.operands[2], op))

    def _runs(self, memref: Value, op: Op) -> list[tuple[Value, int, int]]:
        """(pointer, first element of the vector, length) of the contiguous runs, in value order."""
        ptr, layout = view_of(self.b, memref)
        if isinstance(layout, ComposedLayout):
            raise op.fail(f"vector access through {layout}", "use copy atoms, or index the elements one by one")
        flat = coalesce(layout)
        shape = flat.shape if isinstance(flat.shape, tuple) else (flat.shape,)
        stride = flat.stride if isinstance(flat.stride, tuple) else (flat.stride,)
        if not all(isinstance(s, int) for s in shape):
            raise op.fail(f"the shape {layout.shape} is known at run time only", "use a memref with a static shape")
        run = shape[0] if isinstance(stride[0], int) and stride[0] == 1 else 1
        total = int(size(flat))
        limit = _run_limit(ptr.type, run)
        out = []
        for start in range(0, total, limit):
            out.append((self.b.add_offset(ptr, _offset(crd2idx(start, flat), op)), start, limit))
        return out

    def _load_vec(self, op: Op) -> None:
        with self.b:
            parts = [self.b.ptr_load(p, n) for p, _, n in self._runs(op.operands[0], op)]
            whole = self.b.concat(parts)
            if isinstance(whole.type, t.ScalarType):
                whole = self.b.broadcast(whole, 1)
            self.replace(op.result, whole)

    def _store_vec(self, op: Op) -> None:
        with self.b:
            for p, start, n in self._runs(op.operands[1], op):
                part = self.b.vector_slice(op.operands[0], start, n)
                self.b.ptr_store(self.b.extract(part, 0) if n == 1 else part, p)

    # --- copy ------------------------------------------------------------------------------------

    def _copy(self, op: Op) -> None:
        from ..ir.ops_atoms import copy_payload

        with self.b:
            atom = _atom_value(op.operands[0])
            payload = copy_payload(op)
            src, dst = (_modes(*view_of(self.b, v)) for v in op.operands[1:3])
            pred = op.operands[3] if len(op.operands) > 3 else None
            elem = _elem_of(op.operands[1])
            if payload.bit_size:
                per_call = _per_call(payload.bit_size, elem, op)
                src, dst = (_split_atom(m, per_call, op) for m in (src, dst))
            _same_steps(src, dst, op)
            for m in (src, dst):
                m.made = self._made(m.ptr, m.value, m.rest)
            pred_at = None if pred is None else self._predicates(pred, src, op)
            steps = int(size(src.rest)) if src.rest is not None else 1
            checked: set[tuple[int, ...]] = set()
            for i in range(steps):
                operands = [atom, src.at(self.b, i, op), dst.at(self.b, i, op)]
                if pred_at is not None:
                    operands.append(pred_at(i))
                made = self.b.emit("fly.copy_atom_call", operands)
                kinds = tuple([id(v.type) for v in operands])
                # The first call on operands of these types is verified for all of them.
                made.checked = kinds in checked
                checked.add(kinds)

    def _predicates(self, pred: Value, data: _Modes, op: Op) -> Any:
        if pred.type == t.I1:
            return lambda i: pred
        ptr, layout = view_of(self.b, pred)
        if isinstance(layout, ComposedLayout) or not is_static(layout):
            raise op.fail(f"predicate layout {layout}", "use register memory with a plain static layout")
        steps = int(size(data.rest)) if data.rest is not None else 1
        if int(size(layout)) == 1:
            return lambda i: self.b.ptr_load(ptr)
        if int(size(layout)) != steps:
            raise op.fail(
                f"the predicate {layout} has {size(layout)} entries for {steps} atom calls",
                "give one predicate per atom call: the data's modes without the first",
            )
        return lambda i: self.b.ptr_load(self.b.add_offset(ptr, _offset(crd2idx(i, layout), op)))

    def _made(self, ptr: Value, *layouts: Any) -> dict[Any, Value]:
        """The views that were made of a pointer and layouts in this block, by step; run-time layouts share none."""
        if not all([layout is None or layout.is_static for layout in layouts]):
            return {}
        return self._views.setdefault((id(self.b.block), ptr, *layouts), {})

    # --- gemm ------------------------------------------------------------------------------------

    def _gemm(self, op: Op) -> None:
        with self.b:
            atom = _atom_value(op.operands[0])
            views = [view_of(self.b, v) for v in op.operands[1:]]
            grids = [_Grid(p, lay, name, op) for (p, lay), name in zip(views, "dabc", strict=True)]
            for grid in grids:
                grid.made = self._made(grid.ptr, grid.layout)
            d, a, b, c = grids
            m, n, k = _gemm_bounds(d, a, b, c, op)
            seen: set[tuple[int, int]] = set()
            checked: set[tuple[int, ...]] = set()
            for im, in_, ik in gemm_steps(m, n, k, op):
                acc = d if (im, in_) in seen else c
                seen.add((im, in_))
                dv = d.at(self.b, im, in_)
                cv = dv if acc is d or d.ptr is c.ptr else c.at(self.b, im, in_)
                operands = [atom, dv, a.at(self.b, im, ik), b.at(self.b, in_, ik), cv]
                made = self.b.emit("fly.mma_atom_call", operands)
                kinds = tuple([id(v.type) for v in operands])
                # The first call of operands of these types is verified for all of them.
                made.checked = kinds in checked
                checked.add(kinds)


class _Modes:
    """A memref as (value mode, rest modes)."""

    def __init__(self, ptr: Value, value: Any, rest: Layout | None) -> None:
        self.ptr, self.value, self.rest = ptr, value, rest
        self.made: dict[Any, Value] = {}

    def at(self, b: Builder, i: int, op: Op) -> Value:
        """The view of atom call ``i``."""
        found = self.made.get(i)
        if found is None:
            found = self.made[i] = self._view(b, i, op)
        return found

    def _view(self, b: Builder, i: int, op: Op) -> Value:
        offset = 0 if self.rest is None else _offset(crd2idx(i, self.rest), op)
        if isinstance(self.value, ComposedLayout):
            start, plain = _flattened(self.value, offset, op)
            return b.make_view(b.add_offset(self.ptr, start), plain)
        return b.make_view(b.add_offset(self.ptr, offset), self.value)


def _flattened(layout: ComposedLayout, offset: Any, op: Op) -> tuple[Any, Layout]:
    """The first offset and a plain layout of the elements that one atom call reaches through a swizzle.

    A swizzle moves runs of ``2**base`` elements as a whole: a run that starts at a multiple of its length stays one.
    """
    outer = coalesce(layout.outer)
    count = size(outer)
    start = layout.offset + offset
    if not isinstance(layout.inner, Swizzle) or isinstance(layout.offset, tuple) or not isinstance(count, int):
        raise op.fail(f"an atom call through {layout}", "use a swizzle over integer offsets, with a static value mode")
    if count > 1:
        if isinstance(outer.shape, tuple) or outer.stride != 1 or count > 1 << layout.inner.base:
            raise op.fail(
                f"{count} elements of {layout.outer} through {layout.inner} are not one run",
                f"the swizzle keeps runs of {1 << layout.inner.base} elements of stride 1",
            )
        if not divides(count, start):
            raise op.fail(
                f"a run of {count} elements from offset {start} may straddle what {layout.inner} moves",
                f"start it at a multiple of {count} (fx.assume says so for a run-time offset)",
            )
    return layout.inner(start), Layout(count, 1)


def _modes(ptr: Value, layout: Any) -> _Modes:
    outer: Any = layout.outer if isinstance(layout, ComposedLayout) else layout
    while isinstance(outer.shape, tuple) and len(outer.shape) == 1 and isinstance(outer.shape[0], tuple):
        outer = outer[0]
    if not isinstance(outer.shape, tuple) or len(outer.shape) == 1:
        value, rest = outer, None
    else:
        value, rest = outer[0], Layout(outer.shape[1:], outer.stride[1:])
    if isinstance(layout, ComposedLayout):
        value = ComposedLayout(layout.inner, layout.offset, value)
    return _Modes(ptr, value, rest)


def _split_atom(m: _Modes, per_call: int, op: Op) -> _Modes:
    """Moves what a value mode holds beyond one atom call to the rest modes."""
    composed = isinstance(m.value, ComposedLayout)
    value = m.value.outer if composed else m.value
    count = size(value)
    if not isinstance(count, int):
        raise op.fail(f"the value mode {value} is known at run time only", "make the first mode static")
    if count == per_call:
        return m
    if count % per_call:
        raise op.fail(
            f"the value mode {value} holds {count} elements, an atom call moves {per_call}",
            f"make the first mode a multiple of {per_call} elements",
        )
    try:
        parts = logical_divide(value, Layout(per_call, 1))
    except FlyError as e:
        raise e.at(op.loc) from None
    inner, more = parts[0], parts[1]
    if m.rest is not None:
        more = Layout((more.shape, *m.rest.shape), (more.stride, *m.rest.stride))
    if composed:
        inner = ComposedLayout(m.value.inner, m.value.offset, inner)
    return _Modes(m.ptr, inner, more)


def _per_call(bit_size: int, elem: t.ScalarType, op: Op) -> int:
    if bit_size % elem.bits:
        raise op.fail(
            f"an atom of {bit_size} bits moves no whole number of {elem}", "choose an atom whose width is a multiple"
        )
    return bit_size // elem.bits


def _same_steps(src: _Modes, dst: _Modes, op: Op) -> None:
    shapes = [1 if m.rest is None else size(m.rest) for m in (src, dst)]
    for m in (src, dst):
        if m.rest is not None and not is_static(m.rest.shape):
            raise op.fail(f"the mode {m.rest} has a run-time extent", "copy tiles of static shape in a loop")
    if shapes[0] != shapes[1]:
        raise op.fail(f"the source needs {shapes[0]} atom calls, the destination {shapes[1]}", "give both equal shapes")


class _Grid:
    """A gemm operand: (V, X, Y) with counts of X and Y."""

    def __init__(self, ptr: Value, layout: Any, name: str, op: Op) -> None:
        if isinstance(layout, ComposedLayout):
            raise op.fail(f"operand {name} has the composed layout {layout}", "gemm operands are plain fragments")
        self.ptr, self.name = ptr, name
        shape = layout.shape if isinstance(layout.shape, tuple) else (layout.shape,)
        if not is_static(layout.shape):
            raise op.fail(f"operand {name} has the run-time shape {layout.shape}", "gemm operands have static shapes")
        plain = isinstance(layout.shape, tuple) and len(shape) > 1
        self.layout = layout
        self.value = layout[0] if plain else layout
        self.modes = [layout[i] for i in range(1, len(shape))] if plain else []
        if len(self.modes) > 2:
            raise op.fail(f"operand {name} has rank {len(shape)}", "use (V,M,N), (V,M,K), (V,N,K) or rank 1")
        self.counts = [int(size(mode)) for mode in self.modes]
        self.made: dict[Any, Value] = {}

    def at(self, b: Any, i: int, j: int) -> Value:
        key = (i, j)
        found = self.made.get(key)
        if found is None:
            offset: Any = 0
            for mode, index in zip(self.modes, (i, j), strict=False):
                offset = offset + crd2idx(index, mode)
            found = self.made[key] = b.make_view(b.add_offset(self.ptr, offset), self.value)
        return found


def _gemm_bounds(d: _Grid, a: _Grid, b: _Grid, c: _Grid, op: Op) -> tuple[int, int, int]:
    def count(g: _Grid, i: int) -> int:
        return g.counts[i] if i < len(g.counts) else 1

    m, n, k = count(d, 0), count(d, 1), count(a, 1)
    for grid, want in ((d, (m, n)), (c, (m, n)), (a, (m, k)), (b, (n, k))):
        got = (count(grid, 0), count(grid, 1))
        if got != want:
            raise op.fail(
                f"operand {grid.name} repeats the atom {got} times, the others ask for {want}",
                "partition all operands with one tiled mma",
            )
    return m, n, k


def _coordinate(index: Value) -> Any:
    if isinstance(index.type, t.IntTupleType):
        from .views import _tuple_of

        return _tuple_of(index)
    return index


def _offset(index: Any, op: Op) -> Any:
    if isinstance(index, tuple):
        raise op.fail(f"the layout gives the coordinate {index}, not an offset", "use integer strides for memory")
    return index


def _elem_of(memref: Value) -> t.ScalarType:
    if not isinstance(memref.type, t.MemRefType):
        raise VerifyError(f"expected a memref, got {memref.type}")
    return memref.type.elem


def _atom_value(atom: Value) -> Value:
    """The atom itself: the operand of a ``make_tiled_*``."""
    if isinstance(atom.type, (t.TiledCopyType, t.TiledMmaType)):
        if atom.op is None or not atom.op.operands:
            raise VerifyError(f"where {atom.type} was made is not known here", fix="make it in the kernel that uses it")
        return atom.op.operands[0]
    return atom


def _run_limit(ptr: t.Type, run: int) -> int:
    """Elements per access of a contiguous run: all of it in registers, at most 16 bytes in memory."""
    if not isinstance(ptr, t.PtrType):
        raise VerifyError(f"expected a pointer, got {ptr}")
    if ptr.space == "register":
        return run
    limit = 16 * 8 // ptr.elem.bits
    if ptr.swizzle is not None:
        limit = min(limit, max(1, (8 << ptr.swizzle.base) // ptr.elem.bits))
    n = min(run, limit)
    while run % n or n & (n - 1):
        n -= 1
    return n
