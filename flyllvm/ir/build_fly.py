"""Pointers, views, memory and atoms of the builder."""

from __future__ import annotations

from math import gcd

from ..errors import FlyError, VerifyError
from ..layout import Basis, ComposedLayout, Dyn, Layout, cosize, get_leaves, is_static
from . import types as t
from .build_index import IndexBuilder, known_index, split_constant
from .core import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from ..layout import Swizzle, Tile
    from .build_index import Index


_VIEW_TYPES: dict[tuple[str, object], t.MemRefType] = {}
_VIEW_TYPES_LIMIT = 4096


class FlyBuilder(IndexBuilder):
    """The part of ``Builder`` for ``fly``, ``gpu`` and intrinsic operations."""

    # --- ids and barriers ------------------------------------------------------------------------

    def thread_id(self, dimension: str = "x") -> Index:
        """Index of the work item in its workgroup; 0 where the known block size is 1."""
        return self._id("gpu.thread_id", dimension, self._known_block(dimension) or 1024)

    def block_id(self, dimension: str = "x") -> Index:
        """Index of the workgroup in the grid."""
        return self._id("gpu.block_id", dimension, 1 << 31)

    def block_dim(self, dimension: str = "x") -> Index:
        """Work items per workgroup; an int where the block size is known."""
        known = self._known_block(dimension)
        return known if known is not None else self._id("gpu.block_dim", dimension, 1025)

    def grid_dim(self, dimension: str = "x") -> Index:
        """Workgroups in the grid."""
        return self._id("gpu.grid_dim", dimension, 1 << 31)

    def _known_block(self, dimension: str) -> int | None:
        size = self.kernel.attrs.get("known_block_size")
        return None if size is None else int(size["xyz".index(dimension)])

    def _id(self, name: str, dimension: str, end: int) -> Index:
        if name == "gpu.thread_id" and end == 1:
            return 0
        v = self.emit(name, (), [t.I32], {"dimension": dimension}).results[0]
        v.range = (0, end - 1)
        return v

    def lane_id(self) -> Value:
        """Index of the lane in its wave."""
        v = self.emit("gpu.lane_id", (), [t.I32]).results[0]
        v.range = (0, self.target.wave_size - 1)
        return v

    def barrier(self, fence: bool = True) -> None:
        """Workgroup barrier with its memory fences."""
        self.emit("gpu.barrier", (), (), None if fence else {"fence": False})

    def intrinsic(
        self,
        name: str,
        result: t.Type | None,
        args: Sequence[Value | int],
        imm_bits: Sequence[int] | int = 32,
        pure: bool = False,
    ) -> Value | None:
        """Calls an LLVM intrinsic; Python ints among ``args`` are immediates of ``imm_bits`` bits."""
        operands = [a for a in args if isinstance(a, Value)]
        numbers = [(i, a) for i, a in enumerate(args) if not isinstance(a, Value)]
        widths = [imm_bits] * len(numbers) if isinstance(imm_bits, int) else imm_bits
        imms = tuple((i, a, w) for (i, a), w in zip(numbers, widths, strict=True))
        attrs: dict[str, Any] = {"intrin": name, "imms": imms}
        if pure:
            attrs["pure"] = True
        made = self.emit("llvm.call_intrinsic", operands, [] if result is None else [result], attrs)
        return made.results[0] if made.results else None

    def readfirstlane(self, v: Index) -> Index:
        """The value of the first active lane, known to be uniform; an int stays an int."""
        if isinstance(v, int):
            return v
        made = self.intrinsic("llvm.amdgcn.readfirstlane.i32", t.I32, [v])
        if made is None:
            raise VerifyError("readfirstlane has no result", self.location())
        made.divisibility, made.range = v.divisibility, v.range
        return made

    # --- layouts as values -----------------------------------------------------------------------

    def int_tuple(self, value: object) -> Value:
        """An int tuple as an operand: run-time leaves become operands."""
        leaves = [x for x in get_leaves(value) if not is_static(x)]
        return self.emit("fly.make_int_tuple", leaves, [t.IntTupleType(_symbolic(value))]).results[0]

    def layout(self, layout: Layout | ComposedLayout) -> Value:
        """A layout as an operand."""
        type_ = t.LayoutType(symbolic_layout(layout))
        if is_static(layout):
            return self.emit("fly.static", (), [type_]).results[0]
        if isinstance(layout, ComposedLayout):
            inner = layout.inner
            first = (
                self.layout(inner)
                if isinstance(inner, (Layout, ComposedLayout))
                else self.emit("fly.static", (), [t.LayoutType(inner)]).results[0]
            )
            parts = [first, self.int_tuple(layout.offset), self.layout(layout.outer)]
            return self.emit("fly.make_composed_layout", parts, [type_]).results[0]
        parts = [self.int_tuple(layout.shape), self.int_tuple(layout.stride)]
        return self.emit("fly.make_layout", parts, [type_]).results[0]

    # --- pointers and views ----------------------------------------------------------------------

    def alloca(self, elem: t.ScalarType, layout: Layout) -> Value:
        """Register memory of a static layout; returns the memref."""
        bits = elem.bits * int(cosize(layout))
        ptr = t.PtrType(elem, "register", _alloca_align(elem, bits))
        return self.emit("fly.memref.alloca", (), [t.MemRefType(ptr, layout)]).results[0]

    def shared(self, elem: t.ScalarType, size_bytes: int, align: int = 16, symbol: str | None = None) -> Value:
        """A new LDS allocation of ``size_bytes`` bytes, aligned to ``align`` bytes."""
        count = self.kernel.attrs.setdefault("lds_allocations", 0)
        self.kernel.attrs["lds_allocations"] = count + 1
        attrs = {"allocBytes": size_bytes, "allocAlign": align, "symbol": symbol or f"lds{count}"}
        return self.emit("fly.make_ptr", (), [t.PtrType(elem, "shared", align)], attrs).results[0]

    def dyn_shared(self, elem: t.ScalarType = t.I8, align: int = 1024) -> Value:
        """The LDS given at launch."""
        return self.emit("fly.get_dyn_shared", (), [t.PtrType(elem, "shared", align)]).results[0]

    def make_buffer(self, base: Value, num_records: Value, flags: int | None = None, stride: int = 0) -> Value:
        """A buffer-descriptor pointer over a global one; ``num_records`` is an i64 in bytes."""
        if not isinstance(base.type, t.PtrType):
            raise VerifyError(f"a buffer descriptor over {base.type}", self.location(), "pass a global pointer")
        flags = self.target.chip.buffer_flags if flags is None else flags
        # Word 3 is a bit pattern: the constant keeps its 32 bits.
        operands = [base, self.constant(stride, t.I16), num_records, self.constant(flags, t.I32)]
        return self.emit("fly.make_ptr", operands, [base.type.with_(space="buffer_desc")]).results[0]

    def get_iter(self, view: Value) -> Value:
        """The pointer of a memref; looks through ``make_view``."""
        if view.op is not None and view.op.name == "fly.make_view":
            return view.op.operands[0]
        if not isinstance(view.type, t.MemRefType):
            raise VerifyError(f"get_iter of {view.type}", self.location(), "pass a memref")
        return self.emit("fly.get_iter", [view], [view.type.ptr]).results[0]

    def make_view(self, ptr: Value, layout: Layout | ComposedLayout) -> Value:
        """A memref over a pointer."""
        if not isinstance(ptr.type, t.PtrType):
            raise VerifyError(f"make_view of {ptr.type}", self.location(), "pass a pointer")
        if not layout.is_static:
            type_ = t.MemRefType(ptr.type, symbolic_layout(layout))
            return self.emit("fly.make_view", [ptr, self.layout(layout)], [type_]).results[0]
        made = self.emit("fly.make_view", [ptr, self.static_layout(layout)], [view_type(ptr.type, layout)])
        made.checked = True  # the type was made from the pointer and the layout
        return made.results[0]

    def static_layout(self, layout: Layout | ComposedLayout) -> Value:
        """A static layout as an operand; it needs none, so it stands in the kernel's body and serves everywhere."""
        shared = self._static_layouts.get(layout)
        if shared is None:
            shared = self._static_layouts[layout] = self.layout(layout)
        return shared

    def add_offset(self, ptr: Value, offset: Index) -> Value:
        """``ptr`` plus ``offset`` elements: run-time part first, the constant last."""
        if not isinstance(ptr.type, t.PtrType):
            raise VerifyError(f"add_offset of {ptr.type}", self.location(), "pass a pointer")
        offset = known_index(offset)
        if isinstance(offset, int) and offset == 0:
            return ptr
        if isinstance(offset, Value):
            split = split_constant(offset)
            if split is not None:
                return self.add_offset(self.add_offset(ptr, split[0]), split[1])
        base, known = ptr_parts(ptr)
        if isinstance(offset, int):
            return self._offset(base, known + offset) if known + offset else base
        inner = base.op
        if inner is not None and inner.name == "fly.add_offset" and base.block.depth >= offset.block.depth:
            # Two run-time offsets join; the more invariant sum is formed first.
            return self._offset(self._offset_chain(base, offset), known) if known else self._offset_chain(base, offset)
        moved = self._offset(base, offset)
        return self._offset(moved, known) if known else moved

    def _offset_chain(self, base: Value, offset: Value) -> Value:
        inner = base.op
        if inner is None:
            return self._offset(base, offset)
        first = inner.operands[1]
        if isinstance(base.type, t.PtrType) and base.type.space in _WIDE and not _sum_fits(first, offset):
            # Each part is widened by itself where its sum may leave 32 bits.
            first, offset = self.to_width(first, t.I64), self.to_width(offset, t.I64)
        return self._offset(inner.operands[0], self.index_add(first, offset))

    def _offset(self, ptr: Value, offset: Index) -> Value:
        type_ = ptr.type
        if not isinstance(type_, t.PtrType):
            raise VerifyError(f"add_offset of {type_}", self.location(), "pass a pointer")
        div = abs(offset) if isinstance(offset, int) else offset.divisibility
        align = offset_align(type_, div)
        moved = type_ if align == type_.align else type_.with_(align=align)
        made = self.emit("fly.add_offset", [ptr, self.value(offset)], [moved])
        made.checked = True  # the type was made from the pointer, the offset is an index
        return made.results[0]

    def apply_swizzle(self, ptr: Value, swizzle: Swizzle) -> Value:
        """The pointer with a swizzle of its byte address."""
        if not isinstance(ptr.type, t.PtrType):
            raise VerifyError(f"apply_swizzle of {ptr.type}", self.location(), "pass a pointer")
        return self.emit("fly.apply_swizzle", [ptr], [ptr.type.with_(swizzle=swizzle)]).results[0]

    def recast_iter(self, ptr: Value, elem: t.ScalarType) -> Value:
        """The same address with another element type."""
        if not isinstance(ptr.type, t.PtrType):
            raise VerifyError(f"recast_iter of {ptr.type}", self.location(), "pass a pointer")
        if ptr.type.elem == elem:
            return ptr
        return self.emit("fly.recast_iter", [ptr], [ptr.type.with_(elem=elem)]).results[0]

    def ptr_load(self, ptr: Value, count: int = 1) -> Value:
        """``count`` elements at a pointer."""
        if not isinstance(ptr.type, t.PtrType):
            raise VerifyError(f"ptr.load of {ptr.type}", self.location(), "pass a pointer")
        return self.emit("fly.ptr.load", [ptr], [t.value_type(count, ptr.type.elem)]).results[0]

    def ptr_store(self, value: Value, ptr: Value) -> None:
        """Stores a scalar or vector at a pointer."""
        self.emit("fly.ptr.store", [value, ptr])

    # --- atoms -----------------------------------------------------------------------------------

    def make_copy_atom(self, type_: t.CopyAtomType) -> Value:
        """A copy atom with its default state."""
        self._check_target(type_.op)
        return self.emit("fly.make_copy_atom", (), [type_], {"valBits": type_.val_bits}).results[0]

    def make_mma_atom(self, type_: t.MmaAtomType) -> Value:
        """An mma atom with its default state."""
        self._check_target(type_.op)
        return self.emit("fly.make_mma_atom", (), [type_]).results[0]

    def _check_target(self, op: Any) -> None:
        try:
            op.check_target(self.target)
        except FlyError as e:
            raise e.at(self.location()) from None

    def set_value(self, atom: Value, field: str, value: Value) -> Value:
        """The atom with one state field changed."""
        from .atom_state import state_of

        try:
            state_of(atom.type).check_value(field, value.type)
        except FlyError as e:
            raise e.at(self.location()) from None
        return self.emit("fly.atom.set_value", [atom, value], [atom.type], {"field": field}).results[0]

    def make_tiled_copy(self, atom: Value, layout_tv: Layout, tile: Tile) -> Value:
        """A copy atom laid over a tile."""
        if not isinstance(atom.type, t.CopyAtomType):
            raise VerifyError(f"make_tiled_copy of {atom.type}", self.location(), "pass a copy atom")
        return self.emit("fly.make_tiled_copy", [atom], [t.TiledCopyType(atom.type, layout_tv, tile)]).results[0]

    def make_tiled_mma(self, atom: Value, atom_layout: Layout, permutation: Tile) -> Value:
        """An mma atom repeated over (M,N,K)."""
        if not isinstance(atom.type, t.MmaAtomType):
            raise VerifyError(f"make_tiled_mma of {atom.type}", self.location(), "pass an mma atom")
        return self.emit("fly.make_tiled_mma", [atom], [t.TiledMmaType(atom.type, atom_layout, permutation)]).results[0]

    def copy_atom_call(self, atom: Value, src: Value, dst: Value, pred: Value | None = None) -> None:
        """One copy instruction, memory form."""
        self.emit("fly.copy_atom_call", [atom, src, dst] + ([] if pred is None else [pred]))

    def mma_atom_call(self, atom: Value, d: Value, a: Value, b: Value, c: Value) -> None:
        """One matrix instruction, memory form."""
        self.emit("fly.mma_atom_call", [atom, d, a, b, c])


def ptr_parts(ptr: Value) -> tuple[Value, int]:
    """The pointer without its constant offset, and that offset in elements."""
    op = ptr.op
    if op is not None and op.name == "fly.add_offset":
        known = op.operands[1].static_value()
        if known is not None:
            return op.operands[0], known
    return ptr, 0


def view_type(ptr: t.PtrType, layout: Layout | ComposedLayout) -> t.MemRefType:
    """The type of a view of a static layout."""
    key = (ptr.text, layout)
    found = _VIEW_TYPES.get(key)
    if found is None:
        if len(_VIEW_TYPES) >= _VIEW_TYPES_LIMIT:
            _VIEW_TYPES.clear()
        found = _VIEW_TYPES[key] = t.MemRefType(ptr, layout)
    return found


#: Spaces whose addresses have 64 bits.
_WIDE = ("global", "generic", "constant")


def _sum_fits(a: Value, b: Value) -> bool:
    """Whether the sum of two offsets stays in their width."""
    if a.width == 64 or b.width == 64:
        return True
    if a.range is None or b.range is None:
        return False
    return a.range[0] + b.range[0] >= -(1 << 31) and a.range[1] + b.range[1] < 1 << 31


def offset_align(type_: t.PtrType, divisibility: int) -> int:
    """Alignment in bytes of a pointer after an offset that is a multiple of ``divisibility`` elements."""
    bits = gcd(type_.align * 8, divisibility * type_.elem.bits)
    return max(1, bits // 8)


def _alloca_align(elem: t.ScalarType, bits: int) -> int:
    # Registers have no alignment of their own: a power of two that any access to the whole can use.
    size = max(1, bits // 8)
    return max(t.natural_align(elem), min(16, size & -size))


def _symbolic(value: Any) -> Any:
    """The int tuple with run-time leaves replaced by symbolic ones, for use in a type."""
    if isinstance(value, tuple):
        return tuple(_symbolic(v) for v in value)
    if isinstance(value, Value):
        return Dyn(value.width, value.divisibility)
    if isinstance(value, Basis) and isinstance(value.value, Value):
        return Basis(Dyn(value.value.width, value.value.divisibility), value.path)
    return value


def symbolic_layout(layout: Any) -> Any:
    """The layout with run-time leaves replaced by symbolic ones, for use in a type."""
    if is_static(layout):
        return layout
    if isinstance(layout, ComposedLayout):
        return ComposedLayout(symbolic_layout(layout.inner), _symbolic(layout.offset), symbolic_layout(layout.outer))
    if isinstance(layout, Layout):
        return Layout(_symbolic(layout.shape), _symbolic(layout.stride))
    return layout
