"""Fly IR to LLVM instructions: the walk, and what a fly value is meanwhile.

A number or vector is one LLVM value.  A pointer or memref stays symbolic, ``base + offset + constant``, so that
chains of ``add_offset`` cost nothing until an access.  An int tuple is the tuple of its run-time leaves.  An atom is
its state.
"""

from __future__ import annotations

from ..errors import CodegenError, FlyError
from ..ir import lltype as ll, types as t
from ..ir.protocols import LLValue, MemOperand

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ..ir.core import Block, Op, Value
    from ..target import Target
    from .backend import KernelFacts
    from .function import FunctionBuilder
    from .options import Options

    Handler = Callable[["Lowering", Op], None]


class Pointer:
    """A symbolic pointer: the base plus all offsets.

    Attributes:
        base: LLVM pointer, or buffer descriptor.
        offset: Run-time byte offset, or ``None``.
        const: Constant offset in bits; sub-byte elements are packed.
        offset_align: The run-time offsets are multiples of this many bytes (a power of two).
        scalar: Byte offsets (i64) that all lanes of a wave share, one per nesting depth, outermost first.  Global
            memory alone has them; elsewhere they are part of ``offset``.
        most: In global memory the largest that ``offset`` can be, where that is proved to fit 32 bits: the offset is
            then an i32 that is extended with zeros.
    """

    __slots__ = ("base", "const", "most", "offset", "offset_align", "scalar")

    def __init__(
        self,
        base: LLValue,
        offset: LLValue | None = None,
        const: int = 0,
        offset_align: int = 1,
        scalar: tuple[LLValue, ...] = (),
        most: int | None = None,
    ) -> None:
        self.base = base
        self.offset = offset
        self.const = const
        self.offset_align = offset_align
        self.scalar = scalar
        self.most = most


class Lowering:
    """The lowering of one kernel.

    Attributes:
        em: What the instructions are written to.
        facts: What is known of the kernel.
        options: The options of code generation.
        values: What each fly value is.
        carried: 32-bit registers that the enclosing loops carry.
    """

    __slots__ = ("_checked", "_dbg", "carried", "em", "facts", "options", "scaled", "subprogram", "target", "values")

    def __init__(self, em: FunctionBuilder, facts: KernelFacts, options: Options, target: Target) -> None:
        self.em = em
        self.facts = facts
        self.options = options
        self.target = target
        self.values: dict[Value, Any] = {}
        self.scaled: dict[tuple[Value, int, bool], LLValue] = {}
        self.carried = 0
        self.subprogram: int | None = None
        self._checked: dict[int, object] = {}
        self._dbg: dict[object, str] = {}

    # --- the walk ---------------------------------------------------------------------------------

    def block(self, block: Block) -> Op | None:
        """Lowers the operations of a block; returns its terminator, which is left to the caller."""
        em = self.em
        handlers = table()
        loc = None
        for op in block.ops:
            if op.loc is not loc:
                loc = op.loc
                self.locate(op)
            name = op.name
            if name in _TERMINATORS:
                return op
            handler = handlers.get(name)
            if handler is None:
                raise self.unknown(op)
            try:
                handler(self, op)
            except FlyError as e:
                if e.where is None and op.loc.frames:
                    e.at(op.loc)
                raise
            if op.regions:
                self.locate(op)
                em.loc = loc = op.loc
        return None

    def locate(self, op: Op) -> None:
        """Makes an operation's location the current one."""
        em = self.em
        em.loc = op.loc
        if self.subprogram is not None:
            text = self._dbg.get(op.loc)
            if text is None:
                debug = em.module.debug
                text = "" if debug is None else debug.location(op.loc, self.subprogram)
                self._dbg[op.loc] = text
            em.dbg = text

    def unknown(self, op: Op) -> CodegenError:
        """The error for an operation that has no lowering."""
        where = op.loc if op.loc.frames else None
        if op.name in _EXPANDED:
            return CodegenError(
                f"{op.name} reached code generation; it is expanded before",
                where,
                "run passes.expand on the kernel first",
            )
        return CodegenError(f"{op.name} has no lowering to LLVM", where, "remove the operation")

    # --- values -----------------------------------------------------------------------------------

    def get(self, value: Value) -> LLValue:
        """The LLVM value of a number or vector."""
        found = self.values.get(value)
        if not isinstance(found, LLValue):
            raise self.em.fail(
                f"a value of type {value.type} is used where no value was defined before",
                "define values before their use, in the same region or an outer one",
            )
        return found

    def pointer(self, value: Value) -> Pointer:
        """The symbolic pointer of a pointer or memref."""
        found = self.values.get(value)
        if not isinstance(found, Pointer):
            raise self.em.fail(
                f"a pointer of type {value.type} is used where it is not defined", "define it before its use"
            )
        return found

    def memory(self, value: Value) -> MemOperand:
        """The memory operand of a pointer or memref.

        Raises:
            CodegenError: It starts inside a byte, or its elements are not contiguous.
        """
        type_ = value.type
        p = self.pointer(value)
        const = p.const
        count = 1
        if isinstance(type_, t.MemRefType):
            count, first = self._view(type_)
            const += first * stored_bits(type_.elem)
            type_ = type_.ptr
        if not isinstance(type_, t.PtrType):
            raise self.em.fail(f"{value.type} is no memory", "pass a pointer or a memref")
        if const % 8:
            raise self.em.fail(
                f"an access to {type_.elem} elements starts at bit {const % 8} of a byte",
                f"{type_.elem} is packed: start at an element whose index times {type_.elem.bits} is a multiple of 8",
            )
        base, offset = self.shared_base(p), p.offset
        const //= 8
        if offset is not None and p.most is not None:
            if type_.swizzle is None:
                return self._lane_operand(type_, p, base, const, count)
            offset = self.em.cast("zext", offset, ll.I64)
        return MemOperand(type_, base, offset, const, count, p.offset_align)

    def shared_base(self, p: Pointer) -> LLValue:
        """The base of a pointer with all that lanes share."""
        base = p.base
        for shared in p.scalar:
            base = self.em.gep(base, shared, 0)
        return base

    def _lane_operand(self, type_: t.PtrType, p: Pointer, base: LLValue, const: int, count: int) -> MemOperand:
        """The operand at 32-bit offsets of lanes, addressed beside its access, where LLVM folds the sum into it.

        The part of the constant that the instruction has no room for goes into the offset.
        """
        em, offset = self.em, p.offset
        em.note_folded(base)
        limit = self.target.chip.global_immediate
        if offset is not None and const >= limit and (p.most or 0) + const < 1 << 31:
            low = const % limit
            offset, const = em.binary("add", offset, em.const(ll.I32, const - low), "nsw nuw"), low
        if offset is None or offset.const is not None:
            return MemOperand(type_, base, offset, const, count, p.offset_align)
        wide = em.beside(ll.I64, f"zext i32 {offset.text} to i64")
        rhs = f"getelementptr i8, {base.type.text} {base.text}, i64 {wide.text}"
        return MemOperand(type_, em.beside(base.type, rhs), None, const, count, p.offset_align)

    def _view(self, type_: t.MemRefType) -> tuple[int, int]:
        """(elements, index of the first) of a memref that an atom accesses as one run."""
        found = _VIEWS.get(type_.text)
        if found is None:
            found = _VIEWS[type_.text] = self._check_view(type_)
        return found

    def _check_view(self, type_: t.MemRefType) -> tuple[int, int]:
        from ..layout import crd2idx, size

        layout = type_.layout
        count = size(layout)
        if not isinstance(count, int):
            return 1, 0
        indices = [crd2idx(i, layout) for i in range(count)]
        first = indices[0]
        for i, index in enumerate(indices):
            if not isinstance(index, int) or not isinstance(first, int) or index != first + i:
                raise self.em.fail(
                    f"an atom accesses {type_} as one run, but its layout {layout} is not contiguous",
                    "give the atom's value mode stride 1, or use a narrower atom",
                )
        return count, int(first)

    def check_target(self, payload: Any) -> None:
        """Asks an atom once whether the target has it."""
        if id(payload) not in self._checked:
            payload.check_target(self.target)
            self._checked[id(payload)] = payload


def stored_bits(elem: t.ScalarType) -> int:
    """Bits an element takes in memory: small floats are packed, an i1 takes a byte."""
    return 8 if elem.bits == 1 else elem.bits


_TERMINATORS = frozenset(("scf.yield", "scf.condition", "gpu.return"))
_EXPANDED = frozenset(
    ("fly.copy", "fly.gemm", "fly.memref.load", "fly.memref.store", "fly.memref.load_vec", "fly.memref.store_vec")
)
_VIEWS: dict[str, tuple[int, int]] = {}
_TABLE: dict[str, Handler] = {}


def table() -> dict[str, Handler]:
    """The handler of every operation."""
    if not _TABLE:
        from . import lower_arith, lower_atoms, lower_control, lower_gpu, lower_memory, lower_printf, lower_vector

        made: dict[str, Handler] = {}
        for module in (lower_arith, lower_vector, lower_memory, lower_atoms, lower_control, lower_gpu, lower_printf):
            made |= module.TABLE
        # At once: another thread must not see a part of it.
        _TABLE.update(made)
    return _TABLE


def pointer_type(lw: Lowering, type_: t.PtrType) -> ll.LLType:
    """The LLVM pointer type of a fly pointer."""
    return ll.ptr(lw.em.module.backend.space(type_.space))
