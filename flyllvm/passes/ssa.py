"""Stage atoms to stage ssa: register memory becomes values.

One forward walk.  Every register allocation (a *root*) is cut into cells along the vector accesses to
it, and each cell is one SSA value: ``vector<4xf32>`` accumulators stay whole.  Cells that a region
writes are carried through it; what nobody reads is dropped at the end (``passes.dce``).

A root stays in memory when its address is not known at compile time (a run-time offset), when it is
seen through ``recast_iter``, or when an atom without an SSA form touches it.
"""

from __future__ import annotations

from ..ir import types as t
from ..ir.core import Op, Value
from ..ir.ops_atoms import copy_payload
from ..ir.verifier import KEPT_MEMORY
from .dce import eliminate_dead
from .registers import Registers, Root
from .rewrite import Rewriter
from .split import ELEMENTWISE, split_elementwise

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..ir.core import Block, Kernel
    from ..target import Target

    Cell = tuple[Root, int]


def to_ssa(kernel: Kernel, target: Target) -> Kernel:
    """Promotes register memory and turns atom calls on it into their SSA forms."""
    promoter = Promoter(kernel, target)
    kept = promoter.regs.kept()
    done = promoter.run()
    eliminate_dead(done)
    done.attrs["stage"] = "ssa"
    if kept:
        done.attrs[KEPT_MEMORY] = kept
    return done


class Promoter(Rewriter):
    """The rewriter behind ``to_ssa``.

    Attributes:
        regs: What is known of register memory.
        env: The value of every written cell at this place of the walk.
    """

    def __init__(self, kernel: Kernel, target: Target) -> None:
        super().__init__(kernel, target)
        self.regs = Registers(kernel)
        self.env: dict[Cell, Value] = {}
        self.handlers = {
            "fly.memref.alloca": self._alloca,
            "fly.ptr.load": self._load,
            "fly.ptr.store": self._store,
            "fly.copy_atom_call": self._copy,
            "fly.mma_atom_call": self._mma,
            "vector.extract": self._extract,
            "vector.extract_strided_slice": self._slice,
            **dict.fromkeys(ELEMENTWISE, self._elementwise),
        }

    # --- cells -----------------------------------------------------------------------------------

    def _cell(self, root: Root, index: int) -> Value:
        found = self.env.get((root, index))
        if found is None:
            found = self.b.emit("ub.poison", (), [root.cell_type(index)]).results[0]
        return found

    def read(self, root: Root, offset: int, count: int) -> Value:
        """``count`` elements from ``offset``: a scalar for one, else a vector."""
        whole = root.cell_at(offset, count)
        if whole is not None:
            return self._cell(root, whole)
        parts = []
        for index, start, length in root.cells_of(offset, count):
            lo, hi = max(offset, start), min(offset + count, start + length)
            parts.append(self.b.vector_slice(self._cell(root, index), lo - start, hi - lo))
        return self.b.concat(parts)

    def write(self, root: Root, offset: int, value: Value) -> None:
        """Replaces the elements from ``offset`` on."""
        count = t.count_of(value.type)
        whole = root.cell_at(offset, count)
        if whole is not None and (count > 1 or isinstance(value.type, t.ScalarType)):
            self.env[(root, whole)] = value
            return
        for index, start, length in root.cells_of(offset, count):
            lo, hi = max(offset, start), min(offset + count, start + length)
            part = self.b.vector_slice(value, lo - offset, hi - lo)
            if hi - lo < length:
                part = self.b.insert_slice(part, self._cell(root, index), lo - start)
            elif length == 1 and isinstance(part.type, t.VectorType):
                part = self.b.extract(part, 0)
            self.env[(root, index)] = part

    # --- operations ------------------------------------------------------------------------------

    def _alloca(self, op: Op) -> None:
        if self.regs.root_of(op.result) is None:
            self.keep(op)
        # A promoted root leaves no operation; its views are dead and are dropped at the end.

    def _load(self, op: Op) -> None:
        at = self.regs.place(op.operands[0])
        if at is None:
            self.keep(op)
        else:
            value = self.read(*at, t.count_of(op.result.type))
            if isinstance(op.result.type, t.VectorType) and isinstance(value.type, t.ScalarType):
                value = self.b.broadcast(value, 1)
            self.replace(op.result, value)

    def _store(self, op: Op) -> None:
        at = self.regs.place(op.operands[1])
        if at is None:
            self.keep(op)
        else:
            self.write(*at, op.operands[0])

    def _elementwise(self, op: Op) -> None:
        made = split_elementwise(self.b, op)
        if made is None:
            self.keep(op)
        else:
            self.replace(op.result, made)

    def _extract(self, op: Op) -> None:
        if len(op.operands) == 1 and _is_concat(op.operands[0]):
            self.replace(op.result, self.b.extract(op.operands[0], op.attrs["position"]))
        else:
            self.keep(op)

    def _slice(self, op: Op) -> None:
        if _is_concat(op.operands[0]):
            self.replace(op.result, self.b.vector_slice(op.operands[0], op.attrs["offset"], op.attrs["size"]))
        else:
            self.keep(op)

    def _copy(self, op: Op) -> None:
        atom, src, dst, *rest = op.operands
        regs = self.regs
        cell, to_cell = regs.cells.get(id(src)), regs.cells.get(id(dst))
        source = regs.span(src) if cell is None else None
        target = regs.span(dst)
        if cell is None and source is None and target is None:
            if rest and regs.span(rest[0]) is not None:
                op.operands[3] = self._pred(rest[0])
                op.checked = False
            self.keep(op)
            return
        pred = self._pred(rest[0]) if rest else None
        held = src if source is None else self.read(*source)
        operands = [atom, held if cell is None else self._cell(*cell)]
        segments = [1, 0, 0, 0]
        results: list[t.Type] = []
        if target is None:
            operands.append(dst)
            segments[1] = 1
        else:
            results.append(t.value_type(target[2], copy_elem(op)))
        if pred is not None:
            operands.append(pred)
            segments[2] = 1
            if target is not None:
                operands.append(self.read(*target))
                segments[3] = 1
        made = self.b.emit("fly.copy_atom_call_ssa", operands, results, {"segments": tuple(segments)})
        self.trust(made)
        if to_cell is not None:
            self.env[to_cell] = made.results[0]
        elif target is not None:
            self.write(target[0], target[1], made.results[0])

    def _pred(self, pred: Value) -> Value:
        span = self.regs.span(pred)
        return pred if span is None else self.read(*span)

    def _mma(self, op: Op) -> None:
        atom, d, a, b, c = op.operands
        get = self.regs.cells.get
        cell, of_a, of_b, of_c = get(id(d)), get(id(a)), get(id(b)), get(id(c))
        if cell is not None and of_a is not None and of_b is not None and of_c is not None:
            values = [self._cell(*of_a), self._cell(*of_b), self._cell(*of_c)]
            made = self.b.emit("fly.mma_atom_call_ssa", [atom, *values], [cell[0].cell_type(cell[1])])
            self.trust(made)
            self.env[cell] = made.results[0]
            return
        spans = [self.regs.span(v) for v in (d, a, b, c)]
        target, *sources = spans
        if target is None or any(s is None for s in sources):
            self.keep(op)
            return
        values = [self.read(*s) for s in sources if s is not None]
        result = t.value_type(target[2], _memref(d).elem)
        made = self.b.emit("fly.mma_atom_call_ssa", [atom, *values], [result])
        self.trust(made)
        self.write(target[0], target[1], made.result)

    # --- regions ---------------------------------------------------------------------------------

    def region_op(self, op: Op) -> None:
        """Threads the cells that the regions write as carried values."""
        cells = self.regs.written(op)
        if cells:
            # Operands, arguments and what the regions yield grow.
            op.checked = False
            for region in op.regions:
                region.ops[-1].checked = False
        if not cells:
            super().region_op(op)
        elif op.name == "scf.if":
            self._if(op, cells)
        elif op.name == "scf.for":
            self._for(op, cells)
        else:
            self._while(op, cells)

    def _walk(self, block: Block, env: dict[Cell, Value]) -> dict[Cell, Value]:
        saved, self.env = self.env, env
        self._block(block)
        done, self.env = self.env, saved
        return done

    def _values(self, env: dict[Cell, Value], cells: list[Cell]) -> list[Value]:
        saved, self.env = self.env, env
        values = [self._cell(*c) for c in cells]
        self.env = saved
        return values

    def _append_results(self, op: Op, cells: list[Cell]) -> None:
        for cell in cells:
            value = Value(cell[0].cell_type(cell[1]), op, len(op.results))
            op.results.append(value)
            self.env[cell] = value

    def _add_args(self, block: Block, cells: list[Cell]) -> dict[Cell, Value]:
        env = dict(self.env)
        for cell in cells:
            env[cell] = block.add_arg(cell[0].cell_type(cell[1]))
        return env

    def _if(self, op: Op, cells: list[Cell]) -> None:
        for region in op.regions:
            env = self._walk(region, dict(self.env))
            region.ops[-1].operands += self._at_end(region, env, cells)
        self._append_results(op, cells)

    def _at_end(self, region: Block, env: dict[Cell, Value], cells: list[Cell]) -> list[Value]:
        """Cell values at the end of a region; a poison made for one stands before the terminator."""
        outer, last = self.b.block, region.ops.pop()
        self.b.block = region
        values = self._values(env, cells)
        region.ops.append(last)
        self.b.block = outer
        return values

    def _for(self, op: Op, cells: list[Cell]) -> None:
        op.operands += self._values(self.env, cells)
        region = op.regions[0]
        env = self._walk(region, self._add_args(region, cells))
        region.ops[-1].operands += self._at_end(region, env, cells)
        self._append_results(op, cells)

    def _while(self, op: Op, cells: list[Cell]) -> None:
        before, after = op.regions
        op.operands += self._values(self.env, cells)
        env = self._walk(before, self._add_args(before, cells))
        before.ops[-1].operands += self._at_end(before, env, cells)
        env = self._walk(after, self._add_args(after, cells))
        after.ops[-1].operands += self._at_end(after, env, cells)
        self._append_results(op, cells)


def _is_concat(v: Value) -> bool:
    return v.op is not None and v.op.name == "vector.concat"


def copy_elem(op: Op) -> t.ScalarType:
    """Element type a copy moves."""
    copy_payload(op)
    return t.scalar_of(_memref(op.operands[1]).elem)


def _memref(v: Value) -> Any:
    return v.type
