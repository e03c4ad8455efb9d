"""What all of the builder rests on: making operations where they belong.

While a kernel is traced, equal pure operations are merged, and a pure operation is placed in the outermost loop body
where its operands are known.  So address arithmetic that does not depend on a loop is outside of it before LLVM sees
the kernel.
"""

from __future__ import annotations

from ..errors import TraceError
from . import ops_atomic, ops_atoms, ops_memory, ops_vector, types as t  # noqa: F401 (operations are made by name)
from .core import OPS, Block, Kernel, Op, Value, append_checked
from .limit import too_much, trace_limit
from .location import Location, capture

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from ..target import Target

LOOPS = ("scf.for", "scf.while")


class BuilderCore:
    """The place that is written to, and what was written.

    Attributes:
        kernel: The kernel under construction.
        target: The target it is traced for.
        block: The block that new operations go to.
        root_code: Code object of the kernel's function, the outermost in locations.
        loc: Location given to new operations; ``None`` captures the author's line each time.
        limit: Operations that the kernel may have.
        room: Operations that are left of them.
        turns: Iterations of ``while`` loops that Python ran.
        check: Called with every new operation; tracing verifies there, so that an error has the author's stack.
    """

    def __init__(self, kernel: Kernel, target: Target, root_code: object | None = None) -> None:
        self.kernel = kernel
        self.target = target
        self.block = kernel.body
        self.loc: Location | None = None
        #: Why a variable of the author has no value after a branch or loop, and what to write: by (file, name).
        self.unset: dict[tuple[str, str], tuple[str, str]] = {}
        self.root_code = root_code
        self._memo: dict[int, dict[tuple[Any, ...], Op]] = {id(kernel.body): {}}
        self._keep: list[Block] = [kernel.body]
        self._static_layouts: dict[object, Value] = {}
        #: Integer constants by number and type.
        self.ints: dict[tuple[int, str], Value] = {}
        #: Where the operands of a concatenation start.
        self.starts: dict[Value, list[int]] = {}
        self.check: Callable[[Op], None] | None = None
        self.limit = self.room = trace_limit()
        self.turns = 0

    # --- making operations -----------------------------------------------------------------------

    def location(self) -> Location:
        """The location new operations get."""
        return self.loc if self.loc is not None else capture(self.root_code, 2)

    def emit(
        self,
        name: str,
        operands: Sequence[Value] = (),
        result_types: Sequence[t.Type] = (),
        attrs: dict[str, Any] | None = None,
    ) -> Op:
        """Makes an operation, or returns an equal pure one that dominates this place."""
        cls = OPS[name]
        loc = self.loc
        if not cls.pure:
            made = self.block.append(cls(operands, result_types, attrs, (), loc or capture(self.root_code, 2)))
            if self.check is not None:
                self.check(made)
            self.room -= 1
            if self.room < 0:
                raise self.no_room()
            return made
        home = self.block
        if home.depth:
            home = self.home(operands)
        # Values are equal only to themselves, and types by their text.
        types = result_types[0].text if len(result_types) == 1 else tuple([r.text for r in result_types])
        key = (name, types, _freeze(attrs), *operands) if attrs else (name, types, *operands)
        memo = self._memo
        block: Block | None = home
        while block is not None:
            found = memo[id(block)].get(key)
            if found is not None:
                return found
            op = block.parent
            block = None if op is None else op.parent
        made = home.append(cls(operands, result_types, attrs, (), loc or capture(self.root_code, 2)))
        memo[id(home)][key] = made
        if self.check is not None:
            self.check(made)
        self.room -= 1
        if self.room < 0:
            raise self.no_room()
        return made

    def no_room(self) -> TraceError:
        """The error of a kernel that has too many operations."""
        return too_much(f"the kernel {self.kernel.name} has more than {self.limit} operations", self.location())

    def turn(self) -> None:
        """Counts an iteration of a ``while`` that Python runs.

        Raises:
            TraceError: There are too many: it has no end.
        """
        self.turns += 1
        if self.turns > 10 * self.limit:
            what = (
                f"the loops that Python runs while {self.kernel.name} is traced have more than {self.turns - 1} turns"
            )
            raise too_much(what, self.location())

    def home(self, operands: Sequence[Value]) -> Block:
        """The outermost block, reached through loop bodies only, where all operands are known."""
        if not operands:
            return self.kernel.body
        depth = 0
        for v in operands:
            owner = v.owner
            defined = owner if isinstance(owner, Block) else owner.parent
            if defined is not None and defined.depth > depth:
                depth = defined.depth
        block = self.block
        while block.depth > depth and block.parent is not None and block.parent.name in LOOPS:
            outer = block.parent.parent
            if outer is None:
                break
            block = outer
        return block

    def append_checked(self, home: Block, name: str, operands: list[Value], type: t.Type) -> Value:
        """An operation at the end of a block, see ``core.append_checked``; it is not merged with an equal one.

        Args:
            home: Where its operands are known, see ``home``.
        """
        self.room -= 1
        if self.room < 0:
            raise self.no_room()
        return append_checked(home, OPS[name], operands, type, self.location())

    def enter(self, block: Block) -> None:
        """Makes ``block`` the place for new operations."""
        self._memo.setdefault(id(block), {})
        self._keep.append(block)
        self.block = block


def _freeze(attrs: dict[str, Any]) -> tuple[Any, ...]:
    # Floats are keyed by their text: 0.0 and -0.0, or 1 and 1.0, are different constants.
    return tuple((k, repr(v) if isinstance(v, (float, tuple, list)) else (type(v), v)) for k, v in attrs.items())
