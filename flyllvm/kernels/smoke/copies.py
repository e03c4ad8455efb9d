"""Smoke tests of the copy atoms: every width and way between global memory, LDS and registers; atomics; transposes."""

from __future__ import annotations

import numpy as np

from ...atoms import all_rows
from ...atoms.copy_op import CopyAtomOp
from ...atoms.universal import UniversalCopy
from ...ir import types as t
from ...ir.protocols import StatefulOp
from ...layout import Layout
from .case import Case, kernel_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from ...ir.builder import Builder
    from ...ir.core import Value
    from ...target import Target

    Body = Callable[[Builder, Value, Value], None]

BLOCK = 256
# Bytes behind the destination that must stay as they are.
MARGIN = 16


class Plan:
    """How work items use one copy atom.

    Attributes:
        op: The atom.
        elem: Element type of the pointers.
        count: Elements that a work item moves.
    """

    __slots__ = ("count", "elem", "op")

    def __init__(self, op: CopyAtomOp) -> None:
        self.op = op
        # Atomics name their type; all others move bits.
        self.elem: t.ScalarType = getattr(op, "elem", None) or {8: t.I8, 16: t.F16}.get(op.bit_size, t.I32)
        self.count = op.bit_size // self.elem.bits

    @property
    def piece_bytes(self) -> int:
        """Bytes that a work item moves."""
        return self.op.bit_size // 8

    def atom(self, b: Builder) -> Value:
        """The atom; its state keeps the defaults."""
        return b.make_copy_atom(t.CopyAtomType(self.op, self.elem.bits))

    def plain(self, b: Builder) -> Value:
        """The universal copy of the same width."""
        return b.make_copy_atom(t.CopyAtomType(UniversalCopy(self.op.bit_size), self.elem.bits))

    def view(self, b: Builder, ptr: Value) -> Value:
        """A work item's own piece behind a pointer."""
        return b.make_view(b.add_offset(ptr, b.index_mul(b.thread_id(), self.count)), Layout(self.count, 1))

    def registers(self, b: Builder) -> Value:
        """A piece in registers."""
        return b.alloca(self.elem, Layout(self.count, 1))

    def global_or_buffer(self, b: Builder, ptr: Value) -> Value:
        """The pointer that the atom takes: an atom with state reads behind a descriptor."""
        if not isinstance(self.op, StatefulOp):
            return ptr
        return b.make_buffer(ptr, b.constant(BLOCK * self.piece_bytes, t.I64))

    def there_and_back(self, b: Builder, src: Value, dst: Value) -> None:
        """Memory to registers to memory, both through the atom."""
        held = self.registers(b)
        b.copy_atom_call(self.atom(b), self.view(b, self.global_or_buffer(b, src)), held)
        b.copy_atom_call(self.atom(b), held, self.view(b, self.global_or_buffer(b, dst)))

    def into_lds(self, b: Builder, src: Value, dst: Value) -> None:
        """Memory to LDS through the atom; back plainly, by another wave."""
        # A lane's slot is at least a dword: narrower loads write whole ones.
        slot = max(4, self.piece_bytes) * 8 // self.elem.bits
        lds = b.shared(self.elem, BLOCK * max(4, self.piece_bytes))
        held = b.make_view(b.add_offset(lds, b.index_mul(b.thread_id(), slot)), Layout(self.count, 1))
        b.copy_atom_call(self.atom(b), self.view(b, self.global_or_buffer(b, src)), held)
        if "gfx1250." in self.op.mnemonic:  # asynchronous there, with a counter of its own
            b.intrinsic("llvm.amdgcn.s.wait.asynccnt", None, [0], 16)
        b.barrier()
        b.copy_atom_call(self.plain(b), held, self.view(b, dst))

    def update(self, b: Builder, src: Value, dst: Value) -> None:
        """An atomic: the work item's own place is updated with its own value."""
        held = self.registers(b)
        b.copy_atom_call(self.plain(b), self.view(b, src), held)
        b.copy_atom_call(self.atom(b), held, self.view(b, self.global_or_buffer(b, dst)))

    def transpose_global(self, b: Builder, src: Value, dst: Value) -> None:
        """A transposing load from memory."""
        held = self.registers(b)
        b.copy_atom_call(self.atom(b), self.view(b, src), held)
        b.copy_atom_call(self.plain(b), held, self.view(b, dst))

    def transpose_lds(self, b: Builder, src: Value, dst: Value) -> None:
        """A transposing load from LDS."""
        lds, held = b.shared(self.elem, BLOCK * self.piece_bytes), self.registers(b)
        b.copy_atom_call(self.plain(b), self.view(b, src), self.view(b, lds))
        b.barrier()
        b.copy_atom_call(self.atom(b), self.view(b, lds), held)
        b.copy_atom_call(self.plain(b), held, self.view(b, dst))

    def body(self) -> Body:
        """The kernel that suits the atom, by what it says of itself."""
        name = self.op.mnemonic.partition(".")[2]
        if "atomic" in name:
            return self.update
        if name.endswith("lds"):
            return self.into_lds
        if hasattr(self.op, "space"):
            return self.transpose_lds if self.op.space == "shared" else self.transpose_global
        return self.there_and_back


def copy_atoms(target: Target) -> list[CopyAtomOp]:
    """The copy atoms that a target has, but for copies of whole tiles: the simulator does not know those."""
    mine = [op for op in all_rows() if isinstance(op, CopyAtomOp) and target.processor in op.targets]
    return [op for op in mine if op.bit_size]


def copy_case(target: Target, op: CopyAtomOp) -> Case:
    """Every work item moves its own piece through the atom; the rest of the destination stays."""
    plan = Plan(op)
    pointer = t.PtrType(plan.elem, "global", plan.piece_bytes & -plan.piece_bytes)
    text = kernel_text(target, (BLOCK, 1, 1), plan.body(), {"src": pointer, "dst": pointer})

    def args() -> list[object]:
        rng = np.random.default_rng(op.bit_size)
        shape = (BLOCK, plan.piece_bytes)
        source, target_bytes = (_bytes(rng, plan, shape) for _ in range(2))
        return [source, np.concatenate([target_bytes, np.full(MARGIN, 0xEE, np.uint8)])]

    grid, block = (1, 1, 1), (BLOCK, 1, 1)
    return Case(op.name, "copy", target, text, grid=grid, block=block, args=args, outputs=[1])


def _bytes(rng: np.random.Generator, plan: Plan, shape: tuple[int, int]) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    """Random bytes; where the atom calculates with floats, small numbers, so that every result is exact."""
    from .numbers import encode

    if isinstance(plan.elem, t.FloatType) and hasattr(plan.op, "elem"):
        return encode(rng.integers(-8, 9, (shape[0], plan.count)) / 2, plan.elem).reshape(-1)
    return rng.integers(0, 256, shape[0] * shape[1], np.uint8)
