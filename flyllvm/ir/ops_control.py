"""Structured control flow, ids, barriers and other side effects: ``scf``, ``gpu``, ``rocdl``, ``llvm``.

A region's block ends with ``scf.yield`` (``scf.condition`` in the first region of a while); results
and carried values match the yielded ones by position.
"""

from __future__ import annotations

from . import types as t
from .core import ANY, Op, op


@op
class Yield(Op):
    """``scf.yield``: ends a region with the values it hands on."""

    __slots__ = ()
    name = "scf.yield"
    arity = (0, ANY, 0, 0)


@op
class Condition(Op):
    """``scf.condition``: operands (i1, values...); ends the first region of ``scf.while``."""

    __slots__ = ()
    name = "scf.condition"
    arity = (1, ANY, 0, 0)

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
    arity = (1, 1, ANY, 2)

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

    The index runs from ``lower`` while it is less than ``upper`` (signed), by a positive ``step``.  Attr ``unroll``
    is a hint for LLVM: false, true (as it sees fit) or a count.
    """

    __slots__ = ()
    name = "scf.for"
    arity = (3, ANY, ANY, 1)
    attr_names = ("unroll",)

    def verify(self) -> None:
        unroll = self.attrs.get("unroll", True)
        if not isinstance(unroll, (bool, int)) or unroll < 0:
            raise self.fail(f"unroll is {unroll!r}", "use true, false or a positive count")
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
    arity = (0, ANY, ANY, 2)

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
    arity = (0, 0, 1, 0)
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
    arity = (0, 0, 1, 0)

    def verify(self) -> None:
        if self.results[0].type != t.I32:
            raise self.fail(f"result {self.results[0].type}", "the result is an i32")


@op
class Barrier(Op):
    """``gpu.barrier``: all waves of the workgroup arrive, and LDS and global writes before it are seen after it.

    Emitted as release fence, ``s.barrier``, acquire fence, all of workgroup scope.  Attr ``fence``
    false leaves the fences out: execution order only, for authors who place waits by hand.
    """

    __slots__ = ()
    name = "gpu.barrier"
    arity = (0, 0, 0, 0)
    attr_names = ("fence",)

    def verify(self) -> None:
        if not isinstance(self.attrs.get("fence", True), bool):
            raise self.fail(f"fence is {self.attrs['fence']!r}", "use true or false")


@op
class Fence(Op):
    """``llvm.fence``: attrs ``ordering`` (acquire, release, acq_rel, seq_cst) and ``syncscope``."""

    __slots__ = ()
    name = "llvm.fence"
    arity = (0, 0, 0, 0)
    attr_names = ("ordering", "syncscope")

    def verify(self) -> None:
        if self.attrs.get("ordering") not in ("acquire", "release", "acq_rel", "seq_cst"):
            raise self.fail(f"ordering {self.attrs.get('ordering')!r}", "use acquire, release, acq_rel or seq_cst")
        if not isinstance(self.attrs.get("syncscope") or "", str):
            raise self.fail(f"syncscope {self.attrs['syncscope']!r}", 'name a scope such as "workgroup" or "agent"')


@op
class Printf(Op):
    """``gpu.printf``: attr ``format``, with ``{}`` for each operand (``{:u}``: unsigned); operands are scalars."""

    __slots__ = ()
    name = "gpu.printf"
    arity = (0, ANY, 0, 0)
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
    arity = (0, ANY, ANY, 0)
    attr_names = ("intrin", "imms", "pure")

    def verify(self) -> None:
        intrin = self.attrs.get("intrin")
        if not isinstance(intrin, str) or not intrin.startswith("llvm."):
            raise self.fail(f"intrinsic {intrin!r}", "give the full name with 'llvm.'")
        if len(self.results) > 1:
            raise self.fail(f"{len(self.results)} results", "an intrinsic has one result or none")
        if not isinstance(self.attrs.get("pure", False), bool):
            raise self.fail(f"pure is {self.attrs['pure']!r}", "use true or false")
        self._check_imms(self.attrs.get("imms") or ())

    def _check_imms(self, imms: object) -> None:
        rows = imms if isinstance(imms, tuple) else (imms,)
        for row in rows:
            good = isinstance(row, tuple) and len(row) == 3
            # An immediate that is a float comes as its bits.
            good = good and all(type(x) is int for x in row) and row[0] >= 0 and row[2] > 0
            if not good:
                raise self.fail(f"immediate {row!r}", "give (position, value, bits) for each")
        positions = {row[0] for row in rows}
        if len(positions) != len(rows) or any(p >= len(rows) + len(self.operands) for p in positions):
            raise self.fail(f"immediates at positions {sorted(positions)}", "give each argument one position")


@op
class Return(Op):
    """``gpu.return``: ends the kernel body."""

    __slots__ = ()
    name = "gpu.return"
    arity = (0, 0, 0, 0)
