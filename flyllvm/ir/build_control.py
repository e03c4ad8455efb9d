"""Control flow of the builder: branches and loops with the values that cross them."""

from __future__ import annotations

from math import gcd

from ..errors import VerifyError
from . import types as t
from .build_arith import ArithBuilder
from .build_core import LOOPS
from .core import Block, Op, Value
from .facts import loop_index
from .ops_control import Condition, For, If, While, Yield

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class ControlBuilder(ArithBuilder):
    """The part of ``Builder`` for ``scf.if``, ``scf.for`` and ``scf.while``."""

    def _open(self, cls: type[Op], operands: Sequence[Value], result_types: Sequence[t.Type], regions: int) -> Op:
        made = cls(operands, result_types, {}, [Block((), None, self.block.depth + 1) for _ in range(regions)])
        made.loc = self.location()
        made.parent = self.block
        return made

    def _region(self, region: Block, body: Callable[..., Sequence[Value] | None], *args: Value) -> list[Value]:
        outer = self.block
        self.enter(region)
        try:
            return list(body(*args) or ())
        finally:
            self.block = outer

    def _close(self, region: Block, values: Sequence[Value], cls: type[Op] = Yield) -> None:
        region.append(cls(values, (), None, (), self.location()))

    def if_(
        self,
        cond: Value,
        then: Callable[[], Sequence[Value] | None],
        otherwise: Callable[[], Sequence[Value] | None] | None = None,
    ) -> list[Value]:
        """``scf.if``; the callbacks build the branches and return the values they yield.

        Raises:
            VerifyError: The branches yield different types.
        """
        made = self._open(If, [cond], (), 2)
        first = self._region(made.regions[0], then)
        second = self._region(made.regions[1], otherwise) if otherwise is not None else []
        if [v.type for v in first] != [v.type for v in second]:
            raise VerifyError(
                f"the branches of an if yield {[str(v.type) for v in first]} and {[str(v.type) for v in second]}",
                made.loc,
                "give every variable the same type in both branches",
            )
        self._close(made.regions[0], first)
        self._close(made.regions[1], second)
        made.results = [Value(v.type, made, i) for i, v in enumerate(first)]
        self.block.append(made)
        return made.results

    def branch(
        self,
        cond: Value,
        then: Callable[[], object],
        otherwise: Callable[[], object],
        join: Callable[[Callable[[int, Callable[[], list[Value]]], list[Value]]], tuple[list[Value], list[Value]]],
    ) -> list[Value]:
        """``scf.if`` that decides what its branches yield once both are built; selects where both are small and pure.

        Args:
            cond: The condition, an i1.
            then: Builds the first branch.
            otherwise: Builds the second branch.
            join: Returns the values both yield; its argument ``within(i, make)`` runs ``make`` at the end of branch i.
        """
        made = self._open(If, [cond], (), 2)
        regions = made.regions
        for region, build in zip(regions, (then, otherwise), strict=True):
            self._region(region, lambda build=build: [build()][:0])
        first, second = join(lambda i, make: self._region(regions[i], make))
        if _is_cheap(made, first, second):
            return self._selects(made, first, second)
        self._close(regions[0], first)
        self._close(regions[1], second)
        made.results = [Value(v.type, made, i) for i, v in enumerate(first)]
        for result, x, y in zip(made.results, first, second):
            if isinstance(result.type, t.IntType):
                result.divisibility = gcd(x.divisibility, y.divisibility)
                if x.range and y.range:
                    result.range = (min(x.range[0], y.range[0]), max(x.range[1], y.range[1]))
        self.block.append(made)
        return made.results

    def _selects(self, made: Op, first: Sequence[Value], second: Sequence[Value]) -> list[Value]:
        """The operations of both branches here, and a select for each value."""
        moved: dict[int, Value] = {}
        outer = self.loc
        for region in made.regions:
            for o in region.ops:
                self.loc = o.loc
                operands = [moved.get(id(v), v) for v in o.operands]
                new = self.emit(o.name, operands, [r.type for r in o.results], o.attrs or None)
                for old, result in zip(o.results, new.results):
                    moved[id(old)] = result
                    result.divisibility = max(result.divisibility, old.divisibility)
                    result.range = result.range or old.range
        self.loc = made.loc
        cond = made.operands[0]
        # `and` and `or` would let the poison of the branch that is not taken through; a select does not.
        safe = not any(o.name in _MAY_POISON or "overflow" in o.attrs for region in made.regions for o in region.ops)
        pairs = [(moved.get(id(x), x), moved.get(id(y), y)) for x, y in zip(first, second)]
        out = [self._boolean(cond, x, y) if safe and x.type == t.I1 else self.select(cond, x, y) for x, y in pairs]
        self.loc = outer
        return out

    def _boolean(self, cond: Value, x: Value, y: Value) -> Value:
        if y.static_value() == 0:
            return self.binary("arith.andi", cond, x)
        return self.binary("arith.ori", cond, y) if x.static_value() == 1 else self.select(cond, x, y)

    def for_(
        self,
        lower: int | Value,
        upper: int | Value,
        step: int | Value,
        inits: Sequence[Value],
        body: Callable[..., Sequence[Value] | None],
    ) -> list[Value]:
        """``scf.for``; ``body(index, *carried)`` returns the carried values of the next iteration."""
        low, high, stride = self.same_width(lower, upper, step)
        made = self._open(For, [low, high, stride, *inits], [v.type for v in inits], 1)
        region = made.regions[0]
        index = region.add_arg(low.type)
        bounds = [(v.divisibility, v.range) for v in (low, high, stride)]
        index.divisibility, index.range = loop_index(bounds[0], bounds[1], bounds[2], low.width)
        carried = [region.add_arg(v.type) for v in inits]
        outer = self.block
        values = self._region(region, body, index, *carried)
        self._check_carried(made, [v.type for v in made.operands[3:]], values)
        self._close(region, values)
        outer.append(made)
        return made.results

    def while_(
        self,
        inits: Sequence[Value],
        before: Callable[..., tuple[Value, Sequence[Value]]],
        after: Callable[..., Sequence[Value] | None],
    ) -> list[Value]:
        """``scf.while``; ``before(*inits)`` returns (condition, values), ``after(*values)`` the next inits."""
        made = self._open(While, inits, (), 2)
        args = [made.regions[0].add_arg(v.type) for v in inits]
        outer = self.block
        self.enter(made.regions[0])
        try:
            cond, passed = before(*args)
        finally:
            self.block = outer
        self._close(made.regions[0], [cond, *passed], Condition)
        body_args = [made.regions[1].add_arg(v.type) for v in passed]
        values = self._region(made.regions[1], after, *body_args)
        self._check_carried(made, [v.type for v in made.operands], values)
        self._close(made.regions[1], values)
        made.results = [Value(a.type, made, i) for i, a in enumerate(made.regions[1].args)]
        outer.append(made)
        return made.results

    def carry(self, init: Value) -> None:
        """One more carried value for the loop whose body is being built; the body yields its next value last."""
        loop = self.block.parent
        if loop is None or loop.name not in LOOPS:
            raise VerifyError("carry outside of a loop body", self.location(), "call it in the body of a loop")
        loop.operands.append(init)
        self.block.add_arg(init.type)
        if loop.name == "scf.for":
            loop.results.append(Value(init.type, loop, len(loop.results)))
        else:
            before = loop.regions[0]
            before.ops[-1].operands.append(before.add_arg(init.type))

    def mark(self) -> tuple[Block, int]:
        """The present place, for ``rollback``."""
        return self.block, len(self.block.ops)

    def rollback(self, mark: tuple[Block, int]) -> None:
        """Takes back what was made in this block since the mark, except pure operations that do not use it."""
        block, count = mark
        gone: set[int] = set()
        kept: list[Op] = []
        for o in block.ops[count:]:
            if o.pure and not any(id(v) in gone for v in o.operands):
                kept.append(o)
            else:
                gone.update(id(r) for r in o.results)
        dropped = {id(o) for o in block.ops[count:]} - {id(o) for o in kept}
        block.ops[count:] = kept
        memo = self._memo[id(block)]
        for key in [k for k, o in memo.items() if id(o) in dropped]:
            del memo[key]

    def _check_carried(self, made: Op, want: list[t.Type], values: Sequence[Value]) -> None:
        got = [v.type for v in values]
        if got != want:
            raise VerifyError(
                f"a loop carries {[str(x) for x in want]} but its body yields {[str(x) for x in got]}",
                made.loc,
                "keep the type of every carried variable the same over iterations",
            )


#: Pure operations whose result is poison for some operands.
_MAY_POISON = frozenset(("arith.shli", "arith.shrsi", "arith.shrui", "arith.fptosi", "arith.fptoui", "vector.extract"))
#: Operations that two branches may have together to run without a branch.
_CHEAP = 8


def _is_cheap(made: Op, first: Sequence[Value], second: Sequence[Value]) -> bool:
    ops = [o for region in made.regions for o in region.ops]
    plain = all(isinstance(v.type, t.ScalarType) for v in (*first, *second))
    return plain and len(ops) <= _CHEAP and all(o.pure and not o.regions for o in ops)
