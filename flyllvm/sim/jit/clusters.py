"""Clusters of workgroups: ids and shared loads, as `sim.clusters`; workgroups run one after the other all the same."""

from __future__ import annotations

from collections.abc import Callable

from .. import clusters, types as ty
from ..ir import Inst
from . import atomic
from .access import Load, outputs_of, space_of
from .bits import fields_of
from .lower import Lowering
from .parts import NotCovered, Part
from .text import Values

Lower = Callable[[Lowering, Inst], "list[Part] | None"]
Dims = tuple[int, int, int]
# The value of an id from the workgroup's ids and the size of a cluster.
Read = Callable[[Values, list[str], Dims], str]


def _id(read: Read) -> Lower:
    def lower(b: Lowering, inst: Inst) -> list[Part]:
        dims = clusters.dims_in(b.program.kernel)
        if dims is None:
            raise NotCovered("a cluster of unknown size")
        grid = [b.on_entry(f"%grid_{axis}", "i64") for axis in "xyz"]
        ids = [b.on_entry(f"%group_{axis}", "i32") for axis in "xyz"]

        def run(v: Values, *args: str) -> list[str]:
            for count, size in zip(args[:3], dims, strict=True):
                if size > 1:  # only whole clusters may be launched
                    rest = v.op("urem", "i64", count, v.const("i64", size))
                    v.fault_if(v.op("icmp ne", "i64", rest, v.const("i64", 0)))
            return [read(v, list(args[3:]), dims)]

        return b.apply(run, [*grid, *ids], ["i32"])

    return lower


def _axis(i: int) -> dict[str, Lower]:
    axis = "xyz"[i]
    return {
        f"amdgcn.cluster.id.{axis}": _id(lambda v, ids, d: v.op("udiv", "i32", ids[i], v.const("i32", d[i]))),
        f"amdgcn.cluster.workgroup.id.{axis}": _id(lambda v, ids, d: _inside(v, ids, d, i)),
        f"amdgcn.cluster.workgroup.max.id.{axis}": _id(lambda v, ids, d: _number(v, d[i] - 1)),
    }


def _number(v: Values, number: int) -> str:
    return v.op("add", "i32", v.const("i32", number), v.const("i32", 0))


def _inside(v: Values, ids: list[str], dims: Dims, i: int) -> str:
    return v.op("urem", "i32", ids[i], v.const("i32", dims[i]))


def _flat(v: Values, ids: list[str], dims: Dims) -> str:
    total = _inside(v, ids, dims, 0)
    for i, step in ((1, dims[0]), (2, dims[0] * dims[1])):
        total = v.op("add", "i32", total, v.op("mul", "i32", _inside(v, ids, dims, i), v.const("i32", step)))
    return total


def _load(b: Lowering, inst: Inst) -> list[Part]:
    """``cluster.load``, ``global.load.monitor``: a load by each lane from its address."""
    space, address, fields = space_of(inst.operands[0]), b.part(inst.operands[0]), fields_of(inst.type)
    made = outputs_of(b, fields, address.uniform and space not in (0, 5))
    b.read([address], b.add(Load(space, address, fields, ty.store_size(inst.type), made)))
    return made


TABLE: dict[str, Lower] = {
    **_axis(0), **_axis(1), **_axis(2),
    "amdgcn.cluster.workgroup.flat.id": _id(_flat),
    "amdgcn.cluster.workgroup.max.flat.id": _id(lambda v, ids, d: _number(v, d[0] * d[1] * d[2] - 1)),
    **{f"amdgcn.cluster.load.{b}": _load for b in ("b32", "b64", "b128")},
    **{f"amdgcn.{s}.load.monitor.{b}": _load for s in ("global", "flat") for b in ("b32", "b64", "b128")},
    **{
        f"amdgcn.cluster.load.async.to.lds.{width}": atomic.async_copy(True, size)
        for width, size in (("b8", 1), ("b32", 4), ("b64", 8), ("b128", 16))
    },
}  # fmt: skip
