"""Blocks and branches: the builder that atoms see (``ir.protocols.Emitter``)."""

from __future__ import annotations

from ..ir import lltype as ll
from ..ir.protocols import LLValue
from .address import MemoryBuilder
from .dead import drop_dead
from .scope import Scope

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..ir.lltype import LLType
    from ..ir.protocols import Emitter

#: Names of values and blocks that this room makes, a number after each; an argument gets another name.
RESERVED = ("v", "then", "else", "join", "loop", "exit", "test", "body", "slot")


class Hole:
    """A place in the text that is written to later, while it is a context manager's body."""

    __slots__ = ("_outside", "em", "inside")

    def __init__(self, em: FunctionBuilder) -> None:
        self.em = em
        self.inside = (em.lines, em.block, em.scope, em.local)
        self._outside = self.inside

    def __enter__(self) -> None:
        em = self.em
        self._outside = (em.lines, em.block, em.scope, em.local)
        em.lines, em.block, em.scope, em.local = self.inside

    def __exit__(self, *exc: object) -> None:
        em = self.em
        em.lines, em.block, em.scope, em.local = self._outside


class FunctionBuilder(MemoryBuilder):
    """The body of one kernel, written front to back."""

    __slots__ = ()

    # --- blocks -----------------------------------------------------------------------------------

    def new_labels(self, *names: str) -> list[str]:
        """Fresh labels with a common number."""
        n = self.labels
        self.labels += 1
        return [f"{name}{n}" for name in names]

    def start(self, label: str) -> None:
        """Starts a block."""
        self.lines.append(f"{label}:")
        self.block = label
        self.local = {}

    def jump(self, label: str) -> None:
        """Ends the block with a branch."""
        self.lines.append(f"  br label %{label}")

    def branch(self, cond: LLValue, yes: str, no: str, tail: str = "") -> None:
        """Ends the block with a conditional branch; ``tail`` is metadata text."""
        self.line(f"br i1 {cond.text}, label %{yes}, label %{no}{tail}")

    def push(self) -> None:
        """Enters a region that runs at most once where it stands."""
        self.scope = Scope(self.scope)

    def push_loop(self) -> None:
        """Enters a loop: the segment written so far stays open for what leaves the loop."""
        front = self.lines
        self.lines = []
        self.segments.append(self.lines)
        self.scope = Scope(self.scope, front)

    def pop(self) -> None:
        """Leaves the region or loop."""
        parent = self.scope.parent
        if parent is None:
            raise self.fail("the kernel's body ends inside no region", "close regions in the order they were opened")
        self.scope = parent

    def gap(self) -> list[str]:
        """An empty segment here, to be filled later; what follows is written after it."""
        gap: list[str] = []
        self.lines = []
        self.segments += [gap, self.lines]
        return gap

    def hole(self) -> Hole:
        """The end of the current block, to be written later; what follows is written after it."""
        hole = Hole(self)
        self.lines = []
        self.segments.append(self.lines)
        return hole

    def reserve(self, type: LLType, uniform: bool = False) -> LLValue:
        """A value whose instruction is written later."""
        name = f"%v{self.count}"
        self.count += 1
        return LLValue(type, name, None, uniform, self.scope.depth)

    def outside(self, value: LLValue) -> LLValue:
        """A loop's value as it is seen after the loop: lanes may have left in different iterations."""
        if value.level <= self.scope.depth:
            return value
        return LLValue(value.type, value.text, None, False, self.scope.depth)

    def phi(self, type: LLType, incoming: Sequence[tuple[LLValue, str]], uniform: bool = False) -> LLValue:
        """A phi; values that are all the same need none."""
        first = incoming[0][0]
        texts = [v.text for v, _ in incoming]
        if all(t == texts[0] for t in texts):
            return first
        pairs = ", ".join([f"[ {t}, %{label} ]" for t, (_, label) in zip(texts, incoming)])
        return self.value(type, f"phi {type.text} {pairs}", uniform)

    def text(self) -> str:
        """The lines of the body, without instructions that nothing needs."""
        return "\n".join(drop_dead(self.segments))

    # --- what atoms ask for -----------------------------------------------------------------------

    def guarded(self, pred: LLValue, body: Callable[[], LLValue | None], old: LLValue | None) -> LLValue | None:
        """Runs ``body`` in the lanes where ``pred`` holds; the result is ``old`` in the others."""
        if pred.const is not None:
            return body() if pred.const else old
        then, join = self.new_labels("then", "join")
        before = self.block
        # A struct of the old value is built here: the branch below ends the block.
        kept = None if old is None else old.text
        self.branch(pred, then, join)
        self.push()
        self.start(then)
        made = body()
        made_text = "" if made is None else made.text
        end = self.block
        self.jump(join)
        self.pop()
        self.start(join)
        if made is None or made.type is ll.VOID:
            return None
        if kept is None or old is None or old.type is not made.type:
            raise self.fail(
                f"a predicated load of {made.type.text} keeps an old value of type {old.type.text if old else 'none'}",
                "pass the old value, in the type of the result",
            )
        return self.value(made.type, f"phi {made.type.text} [ {made_text}, %{end} ], [ {kept}, %{before} ]")

    def raw(self, text: str, type: LLType) -> LLValue:
        """An instruction written by hand; ``text`` is its right-hand side."""
        if type is ll.VOID:
            self.line(text)
            return LLValue(type, "", None, False, 0)
        return self.value(type, text)

    def alloca(self, type: LLType, align: int) -> LLValue:
        """Register memory: a stack slot at function entry.

        Units:
            ``align`` is in bytes.
        """
        pointer = ll.ptr(self.module.backend.space("register"))
        name = f"%slot{len(self.entry)}"
        tail = f", addrspace({pointer.space})" if pointer.space else ""
        self.entry.append(f"  {name} = alloca {type.text}, align {align}{tail}")
        self.module.known_align[name] = align
        return LLValue(pointer, name, None, False, 0)

    def fence(self, ordering: str, syncscope: str = "") -> None:
        """A memory fence; no scope means the whole system."""
        self.line(f'fence syncscope("{syncscope}") {ordering}' if syncscope else f"fence {ordering}")


if TYPE_CHECKING:

    def _is_emitter(builder: FunctionBuilder) -> Emitter:
        return builder
