"""Base classes of matrix operations: the memory form is load, SSA form, store."""

from __future__ import annotations

from ..errors import AtomError
from ..ir import lltype as ll
from ..layout import size
from .base import Atom, Stateful, Stateless, describe_state

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..ir.protocols import Emitter, LLValue, MemOperand
    from ..ir.types import ScalarType
    from ..layout import Layout


class MmaAtomOp(Atom):
    """Common part of matrix operations ``D = A * B + C``.

    Attributes:
        shape_mnk: (M, N, K) of one block.
        blocks: Independent products in one instruction.
        types: Element types of A, B, C, D as the kernel holds them.
        layout_a: (thread, value) to ``m + M*k + M*K*block``.
        layout_b: (thread, value) to ``n + N*k + N*K*block``.
        layout_c: (thread, value) of C and D to ``m + M*n + M*N*block``.
    """

    __slots__ = ("blocks", "layout_a", "layout_b", "layout_c", "shape_mnk", "types")

    shape_mnk: tuple[int, int, int]
    blocks: int
    types: tuple[ScalarType, ScalarType, ScalarType, ScalarType]
    layout_a: Layout
    layout_b: Layout
    layout_c: Layout

    def register_types(self) -> tuple[ll.LLType, ll.LLType, ll.LLType]:
        """LLVM types of A, B and C in registers, as the kernel holds them."""
        ta, tb, tc, _ = self.types
        a, b, c = (values_per_thread(layout) for layout in (self.layout_a, self.layout_b, self.layout_c))
        return (
            ll.vec_or_scalar(a, ta.storage), ll.vec_or_scalar(b, tb.storage), ll.vec_or_scalar(c, tc.storage),
        )  # fmt: skip

    def result_type(self) -> ll.LLType:
        """LLVM type of D in registers, as the kernel holds it."""
        return ll.vec_or_scalar(values_per_thread(self.layout_c), self.types[3].storage)

    def emit_atom_call(
        self, em: Emitter, state: LLValue | None, d: MemOperand, a: MemOperand, b: MemOperand, c: MemOperand
    ) -> None:
        """The memory form: load A, B and C, SSA form, store to ``d`` in every case."""
        ta, tb, tc = self.register_types()
        result = self.emit_atom_call_ssa(em, state, em.load(a, ta), em.load(b, tb), em.load(c, tc))
        em.store(result, d)

    def emit_atom_call_ssa(self, em: Emitter, state: LLValue | None, a: LLValue, b: LLValue, c: LLValue) -> LLValue:
        """The SSA form: operands in ``register_types``, the result in ``result_type``."""
        raise AtomError(f"{self.name} has only a memory form", fix="leave out the SSA stage of the pipeline")

    def describe(self) -> dict[str, object]:
        """The row as ``flyllvm atoms --json`` prints it."""
        return super().describe() | {
            "shape_mnk": list(self.shape_mnk),
            "blocks": self.blocks,
            "replication_a": 1,
            "replication_b": 1,
            "thr_val_layout_a": str(self.layout_a),
            "thr_val_layout_b": str(self.layout_b),
            "thr_val_layout_c": str(self.layout_c),
            "state": describe_state(self),
            "cycles": None,
        }


def values_per_thread(layout: Layout) -> int:
    """Values of one thread in a (thread, value) layout."""
    return int(size(layout.shape[1]))


class StatelessMma(Stateless, MmaAtomOp):
    """A matrix operation without state."""

    __slots__ = ()


class StatefulMma(Stateful, MmaAtomOp):
    """A matrix operation with run-time state."""

    __slots__ = ()
