"""Where an instruction goes: nested scopes over segments of text.

A kernel's text is a list of segments, each a list of lines.  When a loop starts, the segment in front
of it is kept open: pure instructions whose operands are known there are appended to it instead of the
loop body, and every scope remembers what it has computed.  So address arithmetic leaves loops without a
pass of LLVM, and is shared.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..ir.protocols import LLValue


class Scope:
    """One nested region during emission.

    Attributes:
        parent: The enclosing scope, ``None`` for the kernel's body.
        depth: Nesting depth, 0 for the kernel's body.
        front: The segment in front of a loop, which dominates it; ``None`` if the scope is no loop.
        memo: Right-hand side of each pure instruction made in this scope -> its value.
    """

    __slots__ = ("depth", "front", "memo", "parent")

    def __init__(self, parent: Scope | None = None, front: list[str] | None = None) -> None:
        self.parent = parent
        self.depth: int = 0 if parent is None else parent.depth + 1
        self.front = front
        self.memo: dict[str, LLValue] = {}

    def find(self, rhs: str, level: int) -> LLValue | None:
        """The value of a pure instruction made in this scope or around it, down to a depth."""
        scope: Scope | None = self
        while scope is not None and scope.depth >= level:
            found = scope.memo.get(rhs)
            if found is not None:
                return found
            scope = scope.parent
        return None

    def place(self, level: int) -> Scope | None:
        """The outermost loop between here and a depth, in front of which an instruction of that depth fits."""
        loop: Scope | None = None
        scope: Scope | None = self
        while scope is not None and scope.depth > level:
            if scope.front is not None:
                loop = scope
            scope = scope.parent
        return loop
