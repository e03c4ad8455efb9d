"""The steps that a node becomes: runs of element-wise operations over vectors of lanes, and single other operations."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from .arith import Fn
from .parts import Part, bytes_of
from .text import WIDTH, Values

if TYPE_CHECKING:
    from .gen import Gen


class Op:
    """One element-wise operation."""

    __slots__ = ("fn", "inputs", "outputs")

    def __init__(self, fn: Fn, inputs: list[Part], outputs: list[Part]) -> None:
        self.fn, self.inputs, self.outputs = fn, inputs, outputs


class Step(ABC):
    """Base of the steps of a node; ``emit`` writes it."""

    __slots__ = ("number",)
    number: int

    @abstractmethod
    def emit(self, g: Gen) -> None:
        """Writes the step."""


class Region(Step):
    """Operations on uniform values (``scalars``), then those that run together for each vector of lanes (``ops``)."""

    __slots__ = ("ops", "scalars")

    def __init__(self) -> None:
        self.scalars: list[Op] = []
        self.ops: list[Op] = []

    def emit(self, g: Gen) -> None:
        """Writes the scalars, then one loop over the lanes' vectors."""
        for op in self.scalars:
            v = Values(g.w, False, g.fault_label)
            names = op.fn(v, *(g.scalar(p) for p in op.inputs))
            for part, name in zip(op.outputs, names, strict=True):
                g.define_scalar(part, name)
        ops = self._needed()
        if ops:
            self._loop(g, ops)

    def _needed(self) -> list[Op]:
        """The operations with a result that something reads, or with a check."""
        return [op for op in self.ops if any(p.readers for p in op.outputs) or not op.outputs]

    def _loop(self, g: Gen, ops: list[Op]) -> None:
        made = {id(p) for op in ops for p in op.outputs}
        known: dict[int, str] = {}
        outside: dict[int, Part] = {}
        for op in ops:
            for part in op.inputs:
                if id(part) in made:
                    continue
                if part.uniform:
                    known.setdefault(id(part), g.splat(part))
                else:
                    outside[id(part)] = part
        sources = [(key, part, g.slot(part)) for key, part in outside.items()]
        kept = [p for op in ops for p in op.outputs if p.leaves_step]
        targets = [(part, g.slot(part)) for part in kept]

        def body(index: str) -> None:
            names = dict(known)
            for key, part, base in sources:
                names[key] = load_lanes(g, part.type, base, index)
            v = Values(g.w, True, g.fault_label, lambda: g.check_mask(index))
            for op in ops:
                out = op.fn(v, *(names[id(p)] for p in op.inputs))
                for part, name in zip(op.outputs, out, strict=True):
                    names[id(part)] = name
            for part, base in targets:
                blend = g.masked and part.leaves_node
                store_lanes(g, part.type, base, index, names[id(part)], g.running(index) if blend else None)

        g.each_vector(body)


def load_lanes(g: Gen, t: str, base: str, index: str) -> str:
    """The values of vector number ``index`` of lanes."""
    w = g.w
    if t == "i1":
        bits = w.emit(f"load i{WIDTH}, ptr {w.emit(f'getelementptr i{WIDTH}, ptr {base}, i64 {index}')}, align 2")
        return w.emit(f"bitcast i{WIDTH} {bits} to <{WIDTH} x i1>")
    held = held_type(t)
    place = w.emit(f"getelementptr <{WIDTH} x {held}>, ptr {base}, i64 {index}")
    loaded = w.emit(f"load <{WIDTH} x {held}>, ptr {place}, align {_align(held)}")
    return loaded if held == t else w.emit(f"trunc <{WIDTH} x {held}> {loaded} to <{WIDTH} x {t}>")


def store_lanes(g: Gen, t: str, base: str, index: str, value: str, mask: str | None) -> None:
    """Sets the values of a vector of lanes; with ``mask`` (bits) only those of running lanes."""
    w = g.w
    if t == "i1":
        bits = w.emit(f"bitcast <{WIDTH} x i1> {value} to i{WIDTH}")
        place = w.emit(f"getelementptr i{WIDTH}, ptr {base}, i64 {index}")
        if mask is not None:
            old = w.emit(f"load i{WIDTH}, ptr {place}, align 2")
            rest = w.emit(f"and i{WIDTH} {old}, {w.emit(f'xor i{WIDTH} {mask}, -1')}")
            bits = w.emit(f"or i{WIDTH} {rest}, {w.emit(f'and i{WIDTH} {bits}, {mask}')}")
        w.do(f"store i{WIDTH} {bits}, ptr {place}, align 2")
        return
    held = held_type(t)
    if held != t:
        value = w.emit(f"zext <{WIDTH} x {t}> {value} to <{WIDTH} x {held}>")
    place = w.emit(f"getelementptr <{WIDTH} x {held}>, ptr {base}, i64 {index}")
    if mask is not None:
        flags = w.emit(f"bitcast i{WIDTH} {mask} to <{WIDTH} x i1>")
        old = w.emit(f"load <{WIDTH} x {held}>, ptr {place}, align {_align(held)}")
        vector = f"<{WIDTH} x {held}>"
        value = w.emit(f"select <{WIDTH} x i1> {flags}, {vector} {value}, {vector} {old}")
    w.do(f"store <{WIDTH} x {held}> {value}, ptr {place}, align {_align(held)}")


def held_type(t: str) -> str:
    """The type that a part has in the register file."""
    if t in ("half", "float", "double"):
        return t
    return f"i{bytes_of(t) * 8}"


def _align(held: str) -> int:
    return min(64, WIDTH * bytes_of(held))
