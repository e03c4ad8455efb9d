"""Structured control flow, ids, barriers and other side effects: ``scf``, ``gpu``, ``rocdl``, ``llvm``.

A region's block ends with ``scf.yield`` (``scf.condition`` in the first region of a while); results
and carried values match the yielded ones by position.
"""

from __future__ import annotations

from . import types as t
from .core import Op, op


@op
class Yield(Op):
    """``scf.yield``: ends a region with the values it hands on."""

    __slots__ = ()
    name = "scf.yield"


@op
class Condition(Op):
    """``scf.condition``: operands (i1, values...); ends the first region of ``scf.while``."""

    __slots__ = ()
    name = "scf.condition"

    def verify(self) -> None:
        if not self.operands or self.operands[0].type != t.I1:
            raise self.fail("the first operand is no i1", "pass the loop condition first")


def _yielded(o: Op, region: int) -> list[t.Type]:
    ops = o.regions[region].ops
    if not ops or not isinstance(ops[-1], Yield):
        raise o.fail(f"region {region} does not end with scf.yield", "yield the carried values at its end")
    return [v.type for v in ops[-1].operands]


def _same(o: Op, what: str, got: list[t.Type], want: list[t.Type]) -> None:
    if got != want:
        raise o.fail(
            f"{what}: {[str(x) for x in got]} where {[str(x) for x in want]} is carried",
            "keep the number and the types of carried values the same on every path",
        )


@op
class If(Op):
    """``scf.if``: operand i1; regions then and else; results are what both yield."""

    __slots__ = ()
    name = "scf.if"

    def verify(self) -> None:
        if len(self.operands) != 1 or self.operands[0].type != t.I1:
            raise self.fail("the condition is no i1", "compare first")
        if len(self.regions) != 2:
            raise self.fail(f"{len(self.regions)} regions", "give a then and an else region")
        want = [r.type for r in self.results]
        _same(self, "the then branch yields", _yielded(self, 0), want)
        _same(self, "the else branch yields", _yielded(self, 1), want)


@op
class For(Op):
    """``scf.for``: operands (lower, upper, step, inits...); body arguments (index, carried...).

    The index runs from ``lower`` while it is less than ``upper`` (signed), by a positive ``step``.
    """

    __slots__ = ()
    name = "scf.for"

    def verify(self) -> None:
        if len(self.operands) < 3 or len(self.regions) != 1:
            raise self.fail("needs lower, upper, step and one body", "build it with Builder.for_")
        index = self.operands[0].type
        if index not in (t.I32, t.I64) or any(v.type != index for v in self.operands[1:3]):
            raise self.fail(
                f"bounds of types {[str(v.type) for v in self.operands[:3]]}", "use i32 bounds (or i64 for all three)"
            )
        step = self.operands[2].static_value()
        if step is not None and step <= 0:
            raise self.fail(f"step {step}", "use a positive step")
        want = [r.type for r in self.results]
        _same(self, "initial values", [v.type for v in self.operands[3:]], want)
        _same(self, "body arguments", [a.type for a in self.regions[0].args], [index, *want])
        _same(self, "the body yields", _yielded(self, 0), want)


@op
class While(Op):
    """``scf.while``: operands are the initial values; region 0 computes the condition, region 1 the next values."""

    __slots__ = ()
    name = "scf.while"

    def verify(self) -> None:
        if len(self.regions) != 2:
            raise self.fail(f"{len(self.regions)} regions", "give a condition and a body region")
        before, after = self.regions
        inits = [v.type for v in self.operands]
        want = [r.type for r in self.results]
        _same(self, "arguments of the condition region", [a.type for a in before.args], inits)
        if not before.ops or not isinstance(before.ops[-1], Condition):
            raise self.fail("the condition region does not end with scf.condition", "end it with the i1 and the values")
        _same(self, "the condition hands on", [v.type for v in before.ops[-1].operands[1:]], want)
        _same(self, "arguments of the body", [a.type for a in after.args], want)
        _same(self, "the body yields", _yielded(self, 1), inits)


class _Id(Op):
    __slots__ = ()
    attr_names = ("dimension",)

    def verify(self) -> None:
        if self.attrs.get("dimension") not in ("x", "y", "z") or self.results[0].type != t.I32:
            raise self.fail(f"dimension {self.attrs.get('dimension')!r}", "use x, y or z, and an i32 result")


def _id(name: str, doc: str) -> None:
    op(type(name.replace(".", "_"), (_Id,), {"__slots__": (), "__doc__": doc, "name": name, "pure": True}))


_id("gpu.thread_id", "``gpu.thread_id``: index of the work item in its workgroup.")
_id("gpu.block_id", "``gpu.block_id``: index of the workgroup in the grid.")
_id("gpu.block_dim", "``gpu.block_dim``: work items per workgroup; a constant where the block size is known.")
_id("gpu.grid_dim", "``gpu.grid_dim``: workgroups in the grid.")


@op
class LaneId(Op):
    """``gpu.lane_id``: index of the lane in its wave (i32)."""

    __slots__ = ()
    name = "gpu.lane_id"
    pure = True


@op
class Barrier(Op):
    """``gpu.barrier``: all waves of the workgroup arrive, and LDS and global writes before it are seen after it.

    Emitted as release fence, ``s.barrier``, acquire fence, all of workgroup scope.  Attr ``fence``
    false leaves the fences out: execution order only, for authors who place waits by hand.
    """

    __slots__ = ()
    name = "gpu.barrier"
    attr_names = ("fence",)


@op
class Fence(Op):
    """``llvm.fence``: attrs ``ordering`` (acquire, release, acq_rel, seq_cst) and ``syncscope``."""

    __slots__ = ()
    name = "llvm.fence"
    attr_names = ("ordering", "syncscope")

    def verify(self) -> None:
        if self.attrs.get("ordering") not in ("acquire", "release", "acq_rel", "seq_cst"):
            raise self.fail(f"ordering {self.attrs.get('ordering')!r}", "use acquire, release, acq_rel or seq_cst")


@op
class Printf(Op):
    """``gpu.printf``: attr ``format``; operands are scalars."""

    __slots__ = ()
    name = "gpu.printf"
    attr_names = ("format",)

    def verify(self) -> None:
        if not isinstance(self.attrs.get("format"), str):
            raise self.fail("no format text", "pass a format string")
        for v in self.operands:
            if not isinstance(v.type, t.ScalarType):
                raise self.fail(f"cannot print a {v.type}", "print scalars; extract vector elements first")


@op
class CallIntrinsic(Op):
    """``llvm.call_intrinsic``: attrs ``intrin`` (full name) and ``imms`` (position, value, bits) of constant operands.

    Attr ``pure`` says that the intrinsic neither touches memory nor depends on other lanes.
    """

    __slots__ = ()
    name = "llvm.call_intrinsic"
    attr_names = ("intrin", "imms", "pure")

    def verify(self) -> None:
        if not str(self.attrs.get("intrin", "")).startswith("llvm."):
            raise self.fail(f"intrinsic {self.attrs.get('intrin')!r}", "give the full name with 'llvm.'")


@op
class Return(Op):
    """``gpu.return``: ends the kernel body."""

    __slots__ = ()
    name = "gpu.return"
