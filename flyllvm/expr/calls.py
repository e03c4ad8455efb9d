"""Copies, matrix products, gathers and scatters over fragments; the predicates of copies."""

from __future__ import annotations

from .. import layout as L
from ..errors import TraceError
from ..ir.builder import Builder
from .atoms import CopyAtom, MmaAtom, located
from .coord_tensor import CoordTensor
from .leaves import from_leaves, to_leaves
from .numeric import Boolean, Numeric
from .pointer import Pointer
from .tensor import Tensor, make_fragment_like
from .tiled import TiledCopy, TiledMma

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..ir.core import Value


def _memref(x: Any) -> Value:
    if not isinstance(x, Tensor):
        what = "a coordinate tensor" if isinstance(x, CoordTensor) else repr(x)
        raise TraceError(f"{what} is no memory", Builder.current().location(), "pass a tensor with a pointer")
    return x.ir_value()


def _atom(x: Any, kinds: tuple[type, ...], what: str, fix: str) -> None:
    if not isinstance(x, kinds):
        raise TraceError(f"{what} by {x!r:.60}", Builder.current().location(), f"pass {fix}")


def _pred(pred: Any) -> list[Value]:
    """The predicate operand: nothing, an i1, or register memory of i1."""
    if pred is None:
        return []
    if isinstance(pred, (bool, Numeric)):
        return [Boolean(pred).ir_value()]
    if not isinstance(pred, Tensor) or pred.dtype is not Boolean:
        raise TraceError(
            f"the predicate {pred!r}",
            Builder.current().location(),
            "pass a Boolean, or fx.make_fragment_like(first, dtype=fx.Boolean)",
        )
    return [pred.ir_value()]


def copy(atom: Any, src: Tensor, dst: Tensor, *, pred: Any = None, **state: Any) -> None:
    """Copies a partitioned source to a destination of equal shape; keywords set atom state first.

    Args:
        atom: A copy atom or tiled copy.
        src: Source; mode 0 holds the values of atom calls.
        dst: Destination.
        pred: A Boolean, or register memory of Booleans, one per atom call; false lanes keep the destination.  It
            covers a call as a whole: a call that straddles the edge reads and writes past it, so the extent must be a
            multiple of the call's values (``make_predicate`` checks this).
        state: State fields of the atom, e.g. ``soffset`` (elements).
    """
    _atom(atom, (CopyAtom, TiledCopy), "copy", "fx.make_copy_atom(op, dtype), or a tiled copy (not a thread's slice)")
    chosen = atom.set_value(state) if state else atom
    Builder.current().emit("fly.copy", [chosen.ir_value(), _memref(src), _memref(dst), *_pred(pred)])


def gemm(
    atom: Any,
    d: Tensor,
    a: Tensor,
    b: Tensor,
    c: Tensor,
    *,
    traversal_order: str | None = None,
    traversal_layout: Any = None,
    **state: Any,
) -> None:
    """``d = a * b + c`` over fragments (V,M,K), (V,N,K), (V,M,N); keywords set atom state first.

    Args:
        atom: An mma atom or tiled mma.
        d: Result.
        a: A fragment.
        b: B fragment.
        c: What is added; may be ``d``.
        traversal_order: Order of the atom calls, first letter innermost, e.g. ``KMN``; default ``NMK``.  With
            ``_Serpentine`` appended, inner loops turn back instead of starting over.
        traversal_layout: A static layout whose entries are column-major (m, n, k) indices.

    Raises:
        TraceError: Both an order and a layout are given.
    """
    attrs: dict[str, Any] = {}
    if traversal_order is not None and traversal_layout is not None:
        where = Builder.current().location()
        raise TraceError("gemm: both a traversal order and a layout", where, "give one of them")
    if traversal_order is not None:
        attrs["traversal_order"] = str(traversal_order)
    if traversal_layout is not None:
        attrs["traversal_layout"] = to_leaves(traversal_layout)
    _atom(atom, (MmaAtom, TiledMma), "gemm", "fx.make_mma_atom(op), or a tiled mma (not a thread's slice)")
    chosen = atom.set_value(state) if state else atom
    operands = [chosen.ir_value(), *(_memref(x) for x in (d, a, b, c))]
    Builder.current().emit("fly.gemm", operands, (), attrs or None)


def copy_atom_call(atom: CopyAtom, src: Tensor, dst: Tensor, *, pred: Any = None) -> None:
    """One copy instruction."""
    _atom(atom, (CopyAtom,), "copy_atom_call", "fx.make_copy_atom(op, dtype)")
    Builder.current().emit("fly.copy_atom_call", [atom.ir_value(), _memref(src), _memref(dst), *_pred(pred)])


def mma_atom_call(atom: MmaAtom, d: Tensor, a: Tensor, b: Tensor, c: Tensor) -> None:
    """One matrix instruction."""
    _atom(atom, (MmaAtom,), "mma_atom_call", "fx.make_mma_atom(op)")
    Builder.current().emit("fly.mma_atom_call", [atom.ir_value(), *(_memref(x) for x in (d, a, b, c))])


# --- gather and scatter --------------------------------------------------------------------------


def _calls(atom: Any, data: Tensor) -> tuple[int, L.Layout, L.Layout]:
    """(values of one atom call, layout of a call's values, layout of the calls) of a fragment."""
    inner = atom.atom if isinstance(atom, TiledCopy) else atom
    per_call = inner.op.bit_size // data.dtype.width
    raw = data.raw_layout
    if not isinstance(raw, L.Layout) or not raw.is_static:
        where = Builder.current().location()
        raise TraceError(f"gather or scatter over the layout {raw}", where, "use a fragment with a static layout")
    first, *rest = tuple(raw) if isinstance(raw.shape, tuple) else (raw,)
    if L.size(first) % per_call:
        raise TraceError(
            f"gather or scatter: mode 0 of {raw} is no multiple of the {per_call} values of an atom call",
            Builder.current().location(),
            "use a narrower atom",
        )
    divided = located(lambda: L.logical_divide(first, L.Layout(per_call, 1)))
    more = [divided[1], *rest]
    calls = L.Layout(tuple(m.shape for m in more), tuple(m.stride for m in more))
    return per_call, divided[0], calls


def _indirect(atom: Any, base: Any, offsets: Any, data: Tensor, pred: Any, load: bool) -> None:
    if not isinstance(base, Pointer):
        where = Builder.current().location()
        raise TraceError(f"gather or scatter at {base!r}", where, "pass the pointer: fx.get_iter(tensor)")
    per_call, value, calls = _calls(atom, data)
    count = L.size(calls)
    got = L.size(offsets.raw_layout)
    if not isinstance(got, int) or got != count:
        raise TraceError(
            f"{got} offsets for {count} atom calls over {data}",
            Builder.current().location(),
            "give one offset per atom call: the data's elements divided by the values of a call",
        )
    plain = L.Layout(per_call, 1)
    inner = atom.atom if isinstance(atom, TiledCopy) else atom
    for i in range(count):
        memory = Tensor((base + offsets[i]).ir_value(), plain, base.dtype)
        part = data.at(L.crd2idx(i, calls), value)
        flag = pred[i] if isinstance(pred, Tensor) and L.size(pred.raw_layout) > 1 else pred
        flag = flag[0] if isinstance(flag, Tensor) else flag
        copy_atom_call(inner, *((memory, part) if load else (part, memory)), pred=flag)


def gather(atom: Any, base_iter: Pointer, offsets: Any, dst: Tensor, *, pred: Any = None) -> None:
    """Reads at ``base_iter + offset`` into a fragment, one atom call per offset.

    Args:
        atom: A copy atom.
        base_iter: Pointer to memory.
        offsets: Tensor of offsets in elements, one per atom call of ``dst`` in order.
        dst: Register memory; mode 0 holds whole atom calls.
        pred: A Boolean, or register memory of one Boolean per atom call; false lanes keep the destination.
    """
    _indirect(atom, base_iter, offsets, dst, pred, True)


def scatter(atom: Any, src: Tensor, base_iter: Pointer, offsets: Any, *, pred: Any = None) -> None:
    """Writes a fragment to ``base_iter + offset``, one atom call per offset; the mirror of ``gather``."""
    _indirect(atom, base_iter, offsets, src, pred, False)


# --- predicates ----------------------------------------------------------------------------------


def make_predicate(coords: CoordTensor, extents: Any) -> Tensor:
    """The predicate of a copy: one Boolean per atom call, true where its coordinates are inside ``extents``.

    Args:
        coords: A coordinate tensor partitioned like the data: ``((atom values, rest), ...)``.
        extents: Extents of the whole tensor, nested like a coordinate.

    Raises:
        TraceError: A call may straddle the edge: its first value inside and its last outside.
    """
    if not isinstance(coords, CoordTensor):
        raise TraceError(
            f"make_predicate of a {type(coords).__name__}, which has no coordinates",
            fix="divide and partition fx.make_identity_tensor(t.shape) as the tensor itself, and give that part",
        )
    raw, limits = coords.raw_layout, to_leaves(extents)
    first = L.get(raw, 0)
    value = first[0] if isinstance(first.shape, tuple) else first
    run = L.coshape(value)
    for path, (count, limit, base) in enumerate(_along(run, limits, coords.base)):
        if count > 1 and not (L.divides(count, limit) and L.divides(count, base)):
            raise TraceError(
                f"a copy moves {count} values along mode {path} of extent {limit}, and may straddle its end",
                Builder.current().location(),
                f"use an atom of fewer values, or promise that the extent is a multiple of {count} (div= in the "
                "argument, or fx.assume)",
            )
    zero = tuple(0 for _ in value.shape) if isinstance(value.shape, tuple) else 0
    where: Any = (zero, *(None,) * (L.rank(first) - 1)) if isinstance(first.shape, tuple) else zero
    starts = coords[(where, *(None,) * (L.rank(raw) - 1))]
    pred = make_fragment_like(starts, dtype=Boolean)
    for i in range(L.size(starts.raw_layout)):
        pred[i] = from_leaves(L.elem_less(to_leaves(starts[i]), limits))
    return pred


def _along(run: Any, limits: Any, base: Any) -> list[tuple[int, Any, Any]]:
    """(values of a call, extent, first coordinate) of every mode of the coordinate."""
    runs, ends, starts = (L.flatten(x) for x in (run, limits, base))
    runs += (1,) * (len(ends) - len(runs))
    return list(zip(runs, ends, starts, strict=True))
