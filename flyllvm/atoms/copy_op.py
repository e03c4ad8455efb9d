"""Base classes of copies.

A family says how its instruction loads, stores or moves; the memory form, the SSA form and their predicated forms
follow from that here.
"""

from __future__ import annotations

from ..errors import AtomError
from ..ir import lltype as ll
from ..ir.protocols import MemOperand
from ..layout import Layout
from .base import Atom, Stateful, Stateless, describe_state

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import ClassVar

    from ..ir.protocols import Emitter, LLValue
    from ..ir.types import PtrType


def held_type(mem: MemOperand) -> ll.LLType:
    """The LLVM type of a register operand as the kernel holds it."""
    return ll.vec_or_scalar(mem.count, mem.type.elem.storage)


class CopyAtomOp(Atom):
    """Common part of copies.

    Attributes:
        bit_size: Bits that one thread moves; 0 for copies of whole tiles.
        spaces: The pairs (source, destination) of address spaces it moves between; where several instructions do,
            ``describe()["instruction"]`` lists them in this order.
    """

    __slots__ = ("bit_size",)

    bit_size: int
    spaces: tuple[tuple[str, str], ...] = (("global", "register"), ("register", "global"))

    @property
    def bit_layout_src(self) -> Layout:
        """(thread, bit) of the source to the bit of the tile."""
        return Layout((1, self.bit_size), (1, 1))

    @property
    def bit_layout_dst(self) -> Layout:
        """(thread, bit) of the destination to the bit of the tile."""
        return Layout((1, self.bit_size), (1, 1))

    @property
    def bit_layout_ref(self) -> Layout:
        """The layout that partitioning goes by."""
        return self.bit_layout_dst

    def check_operands(self, src: PtrType, dst: PtrType) -> None:
        """Checks the address spaces.

        Raises:
            AtomError: The instruction does not move between these spaces.
        """

    # What a family defines.

    def emit_load(self, em: Emitter, state: LLValue | None, src: MemOperand, type: ll.LLType) -> LLValue:
        """Memory to registers."""
        raise AtomError(f"{self.name} does not load into registers", fix="pass a destination in memory")

    def emit_store(self, em: Emitter, state: LLValue | None, value: LLValue, dst: MemOperand) -> None:
        """Registers to memory."""
        raise AtomError(f"{self.name} does not store registers", fix="pass a source in memory")

    def emit_move(self, em: Emitter, state: LLValue | None, src: MemOperand, dst: MemOperand) -> None:
        """Memory to memory; through registers unless the family does better."""
        self.emit_store(em, state, self.emit_load(em, state, src, held_type(src)), dst)

    # What it gets from here.

    def emit_atom_call(
        self, em: Emitter, state: LLValue | None, src: MemOperand, dst: MemOperand, pred: LLValue | None
    ) -> None:
        """The memory form: register operands are loaded and stored around the SSA form.

        All of it stands behind the predicate, so a false lane leaves its destination as it is and does not read
        registers that nobody wrote.
        """
        if "register" not in (src.type.space, dst.type.space):
            self.emit_atom_call_ssa(em, state, src, dst, pred, None)
            return

        def body() -> None:
            source = em.load(src, held_type(src)) if src.type.space == "register" else src
            if dst.type.space != "register":
                self.emit_atom_call_ssa(em, state, source, dst, None, None)
                return
            result = self.emit_atom_call_ssa(em, state, source, held_type(dst), None, None)
            if result is not None:
                em.store(result, dst)

        guard(em, pred, body)

    def emit_atom_call_ssa(
        self,
        em: Emitter,
        state: LLValue | None,
        src: MemOperand | LLValue,
        dst: MemOperand | ll.LLType,
        pred: LLValue | None,
        old: LLValue | None,
    ) -> LLValue | None:
        """The SSA form.

        Args:
            em: Where to emit.
            state: The atom's state struct, ``None`` for a stateless atom.
            src: Where to read, or the value to move.
            dst: Where to write, or the LLVM type of the result.
            pred: An i1; false lanes move nothing.
            old: What false lanes keep, for a copy into registers.

        Returns:
            The value for a copy into registers, else ``None``.
        """
        if pred is not None and pred.const is not None:
            if not pred.const:
                return None if isinstance(dst, MemOperand) else old
            pred = None
        if isinstance(dst, MemOperand):
            self._emit_into_memory(em, state, src, dst, pred)
            return None
        if pred is None:
            return self._emit_value(em, state, src, dst)
        if old is None:
            raise AtomError(f"{self.name}: a predicated copy into registers has no old value", fix="pass old")
        if not isinstance(src, MemOperand):
            return em.select(pred, em.bitcast(src, dst), old)
        return em.guarded(pred, lambda: self._emit_value(em, state, src, dst), old)

    def _emit_value(self, em: Emitter, state: LLValue | None, src: MemOperand | LLValue, dst: ll.LLType) -> LLValue:
        return self.emit_load(em, state, src, dst) if isinstance(src, MemOperand) else em.bitcast(src, dst)

    def _emit_into_memory(
        self,
        em: Emitter,
        state: LLValue | None,
        src: MemOperand | LLValue,
        dst: MemOperand,
        pred: LLValue | None,
    ) -> None:
        def body() -> None:
            if isinstance(src, MemOperand):
                self.emit_move(em, state, src, dst)
            else:
                self.emit_store(em, state, src, dst)

        guard(em, pred, body)

    def describe(self) -> dict[str, object]:
        """The row as ``flyllvm atoms --json`` prints it."""
        return super().describe() | {
            "bit_size": self.bit_size,
            "thr_bit_layout_src": str(self.bit_layout_src),
            "thr_bit_layout_dst": str(self.bit_layout_dst),
            "thr_bit_layout_ref": str(self.bit_layout_ref),
            "state": describe_state(self),
            "cycles": None,
            "bytes": self.bit_size // 8,
            "spaces": [list(pair) for pair in self.spaces],
        }


class MemoryMove(CopyAtomOp):
    """A copy between two memories that no register passes through; a false lane leaves its destination as it is.

    Attributes:
        operands: What it moves between, for errors.
    """

    __slots__ = ()

    operands: ClassVar[str]

    def prepare(
        self, em: Emitter, state: LLValue | None, src: MemOperand, dst: MemOperand
    ) -> tuple[str, list[LLValue]]:
        """The intrinsic, named without ``llvm.``, and its arguments.

        They are made before the predicate's branch: what a wave shares is taken from its first lane, and behind the
        branch that may be another one.
        """
        raise AtomError(f"{self.name} does not say what moves {self.operands}", fix="define prepare() in its class")

    def emit_atom_call_ssa(
        self,
        em: Emitter,
        state: LLValue | None,
        src: MemOperand | LLValue,
        dst: MemOperand | ll.LLType,
        pred: LLValue | None,
        old: LLValue | None,
    ) -> LLValue | None:
        """The SSA form, in which both operands stay in memory."""
        if not isinstance(src, MemOperand) or not isinstance(dst, MemOperand):
            raise AtomError(f"{self.name} moves no registers", fix=f"pass {self.operands}")
        if pred is None or pred.const != 0:
            name, args = self.prepare(em, state, src, dst)
            guard(em, pred, lambda: _call(em, name, args))
        return None


def _call(em: Emitter, name: str, args: list[LLValue]) -> None:
    em.intrinsic(name, ll.VOID, args)


def guard(em: Emitter, pred: LLValue | None, body: Callable[[], None]) -> None:
    """Emits ``body`` for the lanes whose predicate is true; for all without one."""
    if pred is not None and pred.const is None:
        em.guarded(pred, body, None)
    elif pred is None or pred.const:
        body()


class StatelessCopy(Stateless, CopyAtomOp):
    """A copy without state."""

    __slots__ = ()


class StatefulCopy(Stateful, CopyAtomOp):
    """A copy with run-time state."""

    __slots__ = ()
