"""Stage fly to stage atoms: whole copies and gemms become atom calls, memref accesses pointer accesses."""

from __future__ import annotations

from ..errors import VerifyError
from ..ir import types as t
from ..ir.static_views import StaticViews
from ..layout import ComposedLayout, coalesce, crd2idx, is_static, size
from .modes import Grid, Modes, plain_offset
from .rewrite import Rewriter
from .traversal import gemm_steps
from .views import view_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

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
        self._views = StaticViews(self.b)
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
        return self.b.add_offset(ptr, plain_offset(crd2idx(coord, layout), op))

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
            out.append((self.b.add_offset(ptr, plain_offset(crd2idx(start, flat), op)), start, limit))
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
            per_call = _per_call(payload.bit_size, _elem_of(op.operands[1]), op) if payload.bit_size else 0
            src, dst = (Modes(self._views, *view_of(self.b, v), per_call, op) for v in op.operands[1:3])
            steps = _same_steps(src, dst, op)
            pred = op.operands[3] if len(op.operands) > 3 else None
            pred_at = None if pred is None else self._predicates(pred, steps, op)
            for i in range(steps):
                operands = [atom, src.at(self.b, i, op), dst.at(self.b, i, op)]
                if pred_at is not None:
                    operands.append(pred_at(i))
                self.trust(self.b.emit("fly.copy_atom_call", operands))

    def _predicates(self, pred: Value, steps: int, op: Op) -> Any:
        if pred.type == t.I1:
            return lambda i: pred
        ptr, layout = view_of(self.b, pred)
        if isinstance(layout, ComposedLayout) or not is_static(layout):
            raise op.fail(f"predicate layout {layout}", "use register memory with a plain static layout")
        if int(size(layout)) == 1:
            return lambda i: self.b.ptr_load(ptr)
        if int(size(layout)) != steps:
            raise op.fail(
                f"the predicate {layout} has {size(layout)} entries for {steps} atom calls",
                "give one predicate per atom call: the data's modes without the first",
            )
        return lambda i: self.b.ptr_load(self.b.add_offset(ptr, plain_offset(crd2idx(i, layout), op)))

    # --- gemm ------------------------------------------------------------------------------------

    def _gemm(self, op: Op) -> None:
        with self.b:
            atom = _atom_value(op.operands[0])
            views = [view_of(self.b, v) for v in op.operands[1:]]
            d, a, b, c = [Grid(self._views, p, lay, name, op) for (p, lay), name in zip(views, "dabc", strict=True)]
            m, n, k = _gemm_bounds(d, a, b, c, op)
            # Two views from one pointer may still name different elements.
            in_place = op.operands[1] is op.operands[4]
            seen: set[tuple[int, int]] = set()
            for im, in_, ik in gemm_steps(m, n, k, op):
                acc = d if (im, in_) in seen else c
                seen.add((im, in_))
                dv = d.at(self.b, im, in_)
                cv = dv if acc is d or in_place else c.at(self.b, im, in_)
                operands = [atom, dv, a.at(self.b, im, ik), b.at(self.b, in_, ik), cv]
                self.trust(self.b.emit("fly.mma_atom_call", operands))


def _per_call(bit_size: int, elem: t.ScalarType, op: Op) -> int:
    if bit_size % elem.bits:
        raise op.fail(
            f"an atom of {bit_size} bits moves no whole number of {elem}", "choose an atom whose width is a multiple"
        )
    return bit_size // elem.bits


def _same_steps(src: Modes, dst: Modes, op: Op) -> int:
    if src.steps is None or dst.steps is None:
        raise op.fail("the modes that repeat the atom have a run-time extent", "copy tiles of static shape in a loop")
    if src.steps != dst.steps:
        raise op.fail(f"the source needs {src.steps} atom calls, the destination {dst.steps}", "give both equal shapes")
    return src.steps


def _gemm_bounds(d: Grid, a: Grid, b: Grid, c: Grid, op: Op) -> tuple[int, int, int]:
    (m, n), (_, k) = d.counts, a.counts
    for grid, want in ((d, (m, n)), (c, (m, n)), (a, (m, k)), (b, (n, k))):
        got = grid.counts
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
        # What a swizzle moves as a whole starts at a multiple of its size: so must an access, to stay inside.
        kept = min(1 << ptr.swizzle.base, ptr.align & -ptr.align)
        limit = min(limit, max(1, 8 * kept // ptr.elem.bits))
    n = min(run, limit)
    while run % n or n & (n - 1):
        n -= 1
    return n
