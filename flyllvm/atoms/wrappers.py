"""What a kernel sees of its atoms: plain descriptions over the types, with all layouts evaluated.

``MmaAtom`` and ``CopyAtom`` forward every question to the operation behind them; ``TiledMma`` and ``TiledCopy`` lay one
over many threads.  They hold no values of the IR: state and emission belong to whoever owns the value.
"""

from __future__ import annotations

from .. import layout as lay
from ..errors import AtomError
from ..ir import types as t
from ..layout import Layout, Tile
from . import contract
from .base import Stateful

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..ir.protocols import CopyOp, MmaOp
    from ..layout.leaf import Leaf
    from ..state import StateStruct
    from ..target import Target

OPERANDS = ("a", "b", "c", "d")


class _Described:
    """Base: equal when the types are."""

    __slots__ = ("type",)

    type: t.Type

    def __repr__(self) -> str:
        return f"<{self.type}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Described) and self.type == other.type

    def __hash__(self) -> int:
        return hash(self.type)


class MmaAtom(_Described):
    """A matrix operation.

    Args:
        op: The operation, or its ``!fly.mma_atom`` type.

    Raises:
        AtomError: It is no matrix operation.
    """

    __slots__ = ("op",)

    type: t.MmaAtomType

    def __init__(self, op: MmaOp | t.MmaAtomType) -> None:
        self.type = op if isinstance(op, t.MmaAtomType) else t.MmaAtomType(op)
        self.op: MmaOp = self.type.op
        if not hasattr(self.op, "shape_mnk"):
            raise AtomError(
                f"{op!r} is no matrix operation", fix="pass one, e.g. fx.rocdl.MFMA(16, 16, 16, fx.Float16)"
            )

    @property
    def thr_layout(self) -> Layout:
        """The lanes that cooperate."""
        return self.op.thr_layout

    @property
    def shape_mnk(self) -> tuple[int, int, int]:
        """(M, N, K) of one block."""
        return self.op.shape_mnk

    @property
    def blocks(self) -> int:
        """Independent products in one instruction."""
        return self.op.blocks

    @property
    def types(self) -> tuple[t.ScalarType, t.ScalarType, t.ScalarType, t.ScalarType]:
        """Element types of A, B, C and D."""
        return self.op.types

    @property
    def state(self) -> StateStruct | None:
        """The run-time state, if the operation has one."""
        return self.op.state if isinstance(self.op, Stateful) else None

    def layout_tv(self, operand: str) -> Layout:
        """(thread, value) layout of an operand into the column-major index of its tile.

        Raises:
            AtomError: The operand is none of a, b, c, d.
        """
        if operand not in OPERANDS:
            raise AtomError(f"{operand!r} is no operand of a matrix operation", fix=f"use one of {', '.join(OPERANDS)}")
        layouts = {"a": self.op.layout_a, "b": self.op.layout_b}
        return layouts.get(operand, self.op.layout_c)

    def check_target(self, target: Target) -> None:
        """Checks that the target has the instruction.

        Raises:
            TargetError: It has not.
        """
        self.op.check_target(target)


class CopyAtom(_Described):
    """A copy operation seen as values of a fixed width.

    Args:
        op: The operation, or its ``!fly.copy_atom`` type.
        val_bits: Bits of a value, unless the type says.

    Raises:
        AtomError: It is no copy, or the bits that a thread moves are no whole number of values.
    """

    __slots__ = ("_views", "op", "val_bits")

    type: t.CopyAtomType

    def __init__(self, op: CopyOp | t.CopyAtomType, val_bits: int | None = None) -> None:
        if not isinstance(op, t.CopyAtomType):
            if not hasattr(op, "bit_size"):
                raise AtomError(f"{op!r} is no copy", fix="pass one, e.g. fx.UniversalCopy(128)")
            if val_bits is None:
                raise AtomError(
                    f"{op} needs the width of its values", fix="pass the bits of an element, e.g. 16 for f16"
                )
            op = t.CopyAtomType(op, val_bits)
        self.type = op
        self.op: CopyOp = op.op
        self.val_bits = op.val_bits
        self._views: dict[str, Layout] = {}
        if self.op.bit_size:
            self.layout_tv("src")
            self.layout_tv("dst")

    @property
    def thr_layout(self) -> Layout:
        """The lanes that cooperate."""
        return self.op.thr_layout

    @property
    def num_values(self) -> int:
        """Values that one thread moves."""
        return self.op.bit_size // self.val_bits

    @property
    def state(self) -> StateStruct | None:
        """The run-time state, if the operation has one."""
        return self.op.state if isinstance(self.op, Stateful) else None

    def layout_tv(self, side: str) -> Layout:
        """(thread, value) layout of a side (``src``, ``dst``, ``ref``) into the value index of the atom's tile.

        Raises:
            AtomError: The side is none of these.
        """
        found = self._views.get(side)
        if found is None:
            op = self.op
            bits = {"src": op.bit_layout_src, "dst": op.bit_layout_dst, "ref": op.bit_layout_ref}.get(side)
            if bits is None:
                raise AtomError(f"{side!r} is no side of a copy", fix="use src, dst or ref")
            found = self._views[side] = contract.value_layout(f"{self.op} of {self.val_bits} bits", bits, self.val_bits)
        return found

    def check_target(self, target: Target) -> None:
        """Checks that the target has the instruction.

        Raises:
            TargetError: It has not.
        """
        self.op.check_target(target)


class TiledCopy(_Described):
    """A copy atom laid over a tile by many threads.

    Args:
        atom: The copy atom.
        layout_tv: (thread, value) to the column-major index in the tile.
        tile: Tile over the first modes of a tensor.

    Raises:
        LayoutError: The thread-value layout does not cover the tile equally often, or the atom does not divide it.
    """

    __slots__ = ("atom", "layout_tv", "tile")

    type: t.TiledCopyType

    def __init__(self, atom: CopyAtom, layout_tv: Layout, tile: Tile | tuple[int, ...]) -> None:
        self.atom = atom
        self.layout_tv = layout_tv
        self.tile = tile if isinstance(tile, Tile) else Tile(*tile)
        lay.check_thread_value(layout_tv, self.tile)
        self.type = t.TiledCopyType(atom.type, layout_tv, self.tile)
        self.layout_tiled("src")
        self.layout_tiled("dst")

    @classmethod
    def of(cls, type: t.TiledCopyType) -> TiledCopy:
        """The description of a type."""
        return cls(CopyAtom(type.atom), type.layout_tv, type.tile)

    @property
    def num_threads(self) -> int:
        """Threads the copy is laid out for."""
        return contract.static_size(self.layout_tv.shape[0], str(self.type))

    def layout_tiled(self, side: str) -> Layout:
        """(thread, (atom value, rest value)) of a side into the tile."""
        found: Layout = lay.tiled_copy_layout(self.layout_tv, self.atom.layout_tv("ref"), self.atom.layout_tv(side))
        return found

    def partition(self, side: str, tensor: Any) -> Any:
        """A tensor's layout as ``(thread, (atom value, rest value), rest M, rest N, ...)``.

        Raises:
            LayoutError: The tile does not divide the tensor.
        """
        ref, own = self.atom.layout_tv("ref"), self.atom.layout_tv(side)
        return lay.tiled_copy_partition(tensor, self.layout_tv, self.tile, ref, own)

    def retile(self, fragment: Layout) -> Layout:
        """A fragment that was partitioned for an MMA, as this copy walks it; registers stay where they are.

        Raises:
            LayoutError: The fragment does not hold whole tiles of the copy.
        """
        retiled: Layout = lay.tiled_copy_retile(fragment, self.layout_tv, self.tile, self.atom.num_values)
        return retiled


class TiledMma(_Described):
    """An mma atom repeated over (M, N, K).

    Args:
        atom: The mma atom.
        atom_layout: Layout of the atoms over (M, N, K); a layout over fewer modes gets modes of size 1.
        permutation: Permutation tile over (M, N, K), by default the extent that the atoms cover.

    Raises:
        LayoutError: The atom layout or the permutation has more than three modes.
        AtomError: The atom computes several blocks, or reads a packed A: neither has a place in one matrix.
    """

    __slots__ = ("atom", "atom_layout", "permutation", "thr_layout_vmnk", "tile_mnk")

    type: t.TiledMmaType

    def __init__(self, atom: MmaAtom, atom_layout: Layout, permutation: Tile | None = None) -> None:
        if atom.blocks > 1:
            raise AtomError(
                f"{atom.op} computes {atom.blocks} independent products and cannot be tiled over one matrix",
                fix="use an atom of one block, or call this one with mma_atom_call",
            )
        if getattr(getattr(atom.op, "row", None), "packing", 1) > 1:
            raise AtomError(
                f"{atom.op} reads a packed A, which is no tile of the dense matrix",
                fix="call it with mma_atom_call, on fragments of the packed A",
            )
        self.atom = atom
        self.atom_layout: Layout = lay.append(atom_layout, None, 3)
        self.permutation = Tile(lay.STAR, lay.STAR, lay.STAR) if permutation is None else permutation
        self.tile_mnk = lay.mma_tile(atom.shape_mnk, self.atom_layout, self.permutation)
        self.thr_layout_vmnk = lay.mma_thread_layout(atom.thr_layout, self.atom_layout)
        self.type = t.TiledMmaType(atom.type, self.atom_layout, self.permutation)

    @classmethod
    def of(cls, type: t.TiledMmaType) -> TiledMma:
        """The description of a type."""
        return cls(MmaAtom(type.atom), type.atom_layout, type.permutation)

    @property
    def num_threads(self) -> int:
        """Threads that cooperate."""
        return contract.static_size(self.thr_layout_vmnk, str(self.type))

    @property
    def tile_size_mnk(self) -> tuple[int, int, int]:
        """Extents of the tile that one round of atoms covers."""
        m, n, k = (contract.static_size(mode, str(self.type)) for mode in self.tile_mnk)
        return m, n, k

    def thread_coord(self, thread: Leaf) -> tuple[Leaf, Leaf, Leaf, Leaf]:
        """(V, M, N, K) coordinate of a thread index."""
        return lay.mma_thread_coord(self.thr_layout_vmnk, thread)

    def partition(self, operand: str, tensor: Any) -> Any:
        """An operand's layout as ``((ThrV,(ThrM,ThrK)),(FrgV,(RestM,RestK)))``.

        Raises:
            LayoutError: The tile does not divide the tensor.
        """
        atom = self.atom
        return lay.tiled_mma_partition(
            operand, tensor, atom.layout_tv(operand), atom.shape_mnk, self.atom_layout, self.permutation
        )

    def slice(self, operand: str, partition: Layout, thread: Leaf) -> tuple[Layout, Any]:
        """One thread's fragment ``(V, M, K)`` of a partition, and the offset of its first element."""
        return lay.tiled_mma_slice(operand, partition, self.thread_coord(thread))

    def layout_tiled(self, operand: str) -> tuple[tuple[Leaf, Leaf], Layout]:
        """Tile extents and (thread, value) layout of an operand, as ``make_tiled_copy_A`` and its kin need them."""
        atom = self.atom
        found: tuple[tuple[Leaf, Leaf], Layout] = lay.tiled_mma_tv(
            operand, atom.layout_tv(operand), atom.shape_mnk, self.atom_layout, atom.thr_layout, self.permutation
        )
        return found

    def tiled_copy(self, operand: str, copy_atom: CopyAtom) -> TiledCopy:
        """The tiled copy whose threads hold what this MMA needs of an operand.

        Raises:
            LayoutError: The copy atom does not divide a thread's values.
        """
        extents, layout_tv = self.layout_tiled(operand)
        return TiledCopy(copy_atom, layout_tv, Tile(*extents))
