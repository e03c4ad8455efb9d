"""Checks a kernel after every stage, so that a broken rule is found where it was broken.

One walk over the operations, without recursion: arity, values defined before use, terminators, each operation's own
rules, what the stage forbids, and the contracts of atoms (``verify_atoms``).  Errors name the operation and the
author's line.
"""

from __future__ import annotations

from ..errors import FlyError, VerifyError
from .core import ANY, MAX_DEPTH, Op
from .ops_control import Return
from .types import MemRefType
from .verify_atoms import RULES, AtomRules

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from ..target import Target
    from .core import Block, Kernel, Value

#: Stages of the fly IR in order; each forbids what the stage's pass has replaced.
STAGES = ("fly", "atoms", "ssa")
#: Kernel attribute of stage ``ssa``: how many register allocations could not become values and stay memory.
KEPT_MEMORY = "register_memory"

_EXPANDED = (
    "fly.copy",
    "fly.gemm",
    "fly.memref.load",
    "fly.memref.store",
    "fly.memref.load_vec",
    "fly.memref.store_vec",
)
_PROMOTE = f"promote it (passes.to_ssa), or count it in the kernel attribute {KEPT_MEMORY}"


def verify(kernel: Kernel, stage: str, target: Target | None = None, *, changes_only: bool = False) -> None:
    """Checks a kernel against the rules of a stage.

    Args:
        kernel: The kernel; it is not changed.
        stage: ``fly`` (anything goes), ``atoms`` (no copy, gemm or memref access left) or ``ssa`` (no register memory
            left either, except for as many allocations as the kernel attribute ``register_memory`` says).
        target: Where it will run; atoms and sizes are checked against it when it is known.
        changes_only: Trust operations that were verified before and not changed by a pass since; what depends on
            the stage and on other operations is checked all the same.

    Raises:
        VerifyError: A rule is broken; names the operation, the rule and the author's line.
        FlyError: An atom refuses its target, its operands or its state.
    """
    if stage not in STAGES:
        raise VerifyError(f"unknown stage {stage!r}", kernel.loc, f"use one of: {', '.join(STAGES)}")
    _Walk(kernel, stage, AtomRules(kernel, target), changes_only).run()


def check_op(op: Op) -> None:
    """Checks one operation by itself: counts, attributes, types.  ``verify`` with ``changes_only`` then trusts it.

    Raises:
        VerifyError: A rule is broken.
    """
    _check_shape(op)
    op.verify()
    op.checked = True


def _check_shape(op: Op) -> None:
    low, high, results, regions = op.arity
    operands = op.operands
    if not low <= len(operands) <= high:
        raise op.fail(f"{len(operands)} operands", f"give {_bounds(low, high)}")
    if len(op.results) != results and results != ANY:
        raise op.fail(f"{len(op.results)} results", f"it has {results}")
    if len(op.regions) != regions:
        raise op.fail(f"{len(op.regions)} regions", f"it has {regions}")
    for key in op.attrs:
        if key not in op.attr_names and "." not in key:
            raise op.fail(f"has no attribute {key!r}", f"its attributes: {', '.join(op.attr_names) or 'none'}")


class _Walk:
    """State of one walk.

    Attributes:
        known: Every value that may be used at this place (values are equal only to themselves).
        may_keep: Register allocations that may still be there; without limit before stage ``ssa``.
        trust: Operations that are marked as checked are not checked by themselves again.
    """

    __slots__ = ("atoms", "kernel", "known", "may_keep", "stage", "trust")

    def __init__(self, kernel: Kernel, stage: str, atoms: AtomRules, trust: bool) -> None:
        self.kernel, self.stage, self.atoms, self.trust = kernel, stage, atoms, trust
        self.known: set[Value] = set()
        kept = kernel.attrs.get(KEPT_MEMORY, 0)
        if type(kept) is not int or kept < 0:
            raise VerifyError(
                f"{KEPT_MEMORY} is {kept!r}", kernel.loc, "give the number of allocations that stay memory"
            )
        self.may_keep = kept if stage == "ssa" else ANY

    def run(self) -> None:
        """Checks the kernel."""
        try:
            self.atoms.check_kernel()
        except FlyError as e:
            raise e.at(self.kernel.loc) from None
        # (block, where to go on in it, nesting depth); a block with a nested region is left for it and taken up again.
        stack: list[tuple[Block, int, int]] = [(self.kernel.body, 0, 0)]
        while stack:
            block, start, depth = stack.pop()
            op = self._block(block, start)
            if op is not None:
                stack.append((block, block.ops.index(op, start) + 1, depth))
                self._enter(op, depth + 1)
                stack.extend((r, 0, depth + 1) for r in reversed(op.regions))

    def _block(self, block: Block, start: int) -> Op | None:
        """Checks the operations of a block up to the first that has regions, and returns that."""
        known, trust, ops = self.known, self.trust, block.ops
        learn, special = known.update, _SPECIAL.get
        # Results of an operation with regions are known after these.
        learn(ops[start - 1].results if start else block.args)
        op = None
        try:
            for op in ops[start:] if start else ops:
                if trust and op.checked and op.parent is block:
                    for v in op.operands:
                        if v not in known:
                            raise self._undefined(op, v)
                else:
                    self._op(op, block)
                rule = special(op.name)
                if rule is not None:
                    rule(self, op)
                if op.regions:
                    return op
                learn(op.results)
        except FlyError as e:
            raise e.at(self.kernel.loc if op is None else op.loc) from None
        if block is not self.kernel.body:
            known.difference_update(block.args, *[o.results for o in ops])
        return None

    def _enter(self, op: Op, depth: int) -> None:
        if depth > MAX_DEPTH:
            raise op.fail(f"regions nest deeper than {MAX_DEPTH}", "flatten the control flow")
        if any(r.parent is not op for r in op.regions):
            raise op.fail("a region belongs to another operation", "make a new block for it")

    def _op(self, op: Op, block: Block) -> None:
        if op.parent is not block:
            raise op.fail("the operation stands in a block that does not hold it", "append it to one block only")
        trusted = self.trust and op.checked
        if not trusted:
            _check_shape(op)
        known = self.known
        for v in op.operands:
            if v not in known:
                raise self._undefined(op, v)
        if not trusted:
            op.verify()
            op.checked = True

    def _terminator(self, op: Op) -> None:
        ops = op.parent.ops if op.parent is not None else []
        if not ops or ops.index(op) != len(ops) - 1:
            raise op.fail("does not end its block", "nothing may follow it")
        in_region = op.parent is not None and op.parent.parent is not None
        if (type(op) is Return) == in_region:
            where = "ends the kernel body only" if type(op) is Return else "ends a region of control flow only"
            fix = "end the kernel with gpu.return, a region with scf.yield"
            raise op.fail(f"stands in the wrong place: it {where}", fix)

    def _expanded(self, op: Op) -> None:
        if self.stage != "fly":
            raise op.fail(f"is not legal at stage {self.stage}", "expand it first (passes.expand)")
        self.atoms.check(op)

    def _alloca(self, op: Op) -> None:
        self.may_keep -= 1
        if self.may_keep < 0:
            raise op.fail("register memory is left at stage ssa", _PROMOTE)

    def _memory_call(self, op: Op) -> None:
        if self.stage == "ssa" and not self.kernel.attrs.get(KEPT_MEMORY):
            for i, v in enumerate(op.operands):
                if isinstance(v.type, MemRefType) and v.type.space == "register":
                    raise op.fail(f"operand {i} is register memory at stage ssa", _PROMOTE)
        RULES[op.name](self.atoms, op)

    def _atom(self, op: Op) -> None:
        RULES[op.name](self.atoms, op)

    def _undefined(self, op: Op, v: Value) -> VerifyError:
        """Says why a value may not be used here."""
        i = op.operands.index(v)
        maker = v.op
        what = f"operand {i} ({v.type}" + (f", made by {maker.name} at {maker.loc})" if maker is not None else ")")
        home = maker.parent if maker is not None else v.owner
        outer = {id(b) for b in _enclosing(op.parent)}
        if id(home) in outer:
            return op.fail(f"{what} is used before it is defined", "define it first")
        if any(home is b for b in _all_blocks(self.kernel)):
            return op.fail(
                f"{what} is defined in a region and used outside of it",
                "yield it: give it a value before the if or the loop",
            )
        return op.fail(
            f"{what} does not belong to this kernel",
            "use values of the kernel that is built, none kept from another one",
        )


def _bounds(low: int, high: int) -> str:
    return str(low) if low == high else f"{low} or more" if high == ANY else f"{low} to {high}"


def _enclosing(block: Block | None) -> list[Block]:
    out = []
    while block is not None:
        out.append(block)
        block = block.parent.parent if block.parent is not None else None
    return out


def _all_blocks(kernel: Kernel) -> list[Block]:
    out, todo = [], [kernel.body]
    while todo:
        block = todo.pop()
        out.append(block)
        todo.extend(r for o in block.ops for r in o.regions)
    return out


_SPECIAL: dict[str, Callable[[_Walk, Op], None]] = {
    **dict.fromkeys(RULES, _Walk._atom),
    **dict.fromkeys(("scf.yield", "scf.condition", "gpu.return"), _Walk._terminator),
    **dict.fromkeys(_EXPANDED, _Walk._expanded),
    **dict.fromkeys(("fly.copy_atom_call", "fly.mma_atom_call"), _Walk._memory_call),
    "fly.memref.alloca": _Walk._alloca,
}
