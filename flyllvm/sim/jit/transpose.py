"""Transposing loads: every lane reads its bytes, then lanes of a group exchange elements, as `sim.matrix_transpose`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...errors import SimError
from .. import matrix_transpose
from ..ir import Inst
from ..matrix_transpose import TransposeLoad
from .access import Memory, outputs_of, space_of
from .bits import Field, fields_of
from .parts import NotCovered, Part, bits_of
from .steps import Step

if TYPE_CHECKING:
    from .gen import Gen
    from .lower import Lowering

# Elements that are no whole bytes are read as words of two, also at the end of the last lane's bytes.
_SLACK_BYTES = 8


class TransposeStep(Step):
    """A transposing load of all running waves."""

    __slots__ = ("address", "exchange", "fields", "outputs", "space")

    def __init__(
        self, space: int, address: Part, exchange: TransposeLoad, fields: list[Field], outputs: list[Part]
    ) -> None:
        self.space, self.address, self.exchange, self.fields, self.outputs = space, address, exchange, fields, outputs

    def emit(self, g: Gen) -> None:
        """Writes the step."""
        size = self.exchange.lane_bytes
        memory = Memory(g, self.space, size, False)
        room = g.place(g.room(g.lanes * size + _SLACK_BYTES))
        base = "" if self.address.uniform else g.slot(self.address)
        targets = [(g.slot(p) if p.readers else "") for p in self.outputs]
        g.each_wave(lambda wave: None, whole=True)

        def read(lane: str) -> None:
            source = memory.resolve(g.get(self.address, lane, base), lane)
            target = g.w.emit(f"getelementptr [{size} x i8], ptr {room}, i64 {lane}")
            g.w.do(f"store i{8 * size} {g.w.emit(f'load i{8 * size}, ptr {source}, align 1')}, ptr {target}, align 1")

        def exchange(lane: str) -> None:
            elements = self._elements(g, room, lane)
            for part, field, target in zip(self.outputs, self.fields, targets, strict=True):
                if target:
                    g.put(part, lane, self._part(g, part.type, 8 * field.offset, elements), target)

        g.each_lane(read)
        g.each_lane(exchange)

    def _elements(self, g: Gen, room: str, lane: str) -> list[str]:
        """The elements that a lane gets, as integers of a whole number of bytes with zeros above."""
        w, moved, bits = g.w, self.exchange, self.exchange.element_bits
        place = w.emit(f"and i64 {lane}, {moved.group - 1}")
        start = w.emit(f"mul i64 {w.emit(f'sub i64 {lane}, {place}')}, {moved.lane_bytes}")
        first = w.emit(f"getelementptr i8, ptr {room}, i64 {start}")
        out = []
        for i in range(moved.source_lane.shape[1]):
            at = self._source(g, i, place)
            if bits % 8 == 0:
                byte = w.emit(f"lshr i64 {at}, 3")
                pointer = w.emit(f"getelementptr i8, ptr {first}, i64 {byte}")
                out.append(w.emit(f"load i{bits}, ptr {pointer}, align 1"))
                continue
            pointer = w.emit(f"getelementptr i8, ptr {first}, i64 {w.emit(f'lshr i64 {at}, 3')}")
            shift = w.emit(f"trunc i64 {w.emit(f'and i64 {at}, 7')} to i16")
            word = w.emit(f"lshr i16 {w.emit(f'load i16, ptr {pointer}, align 1')}, {shift}")
            out.append(w.emit(f"trunc i16 {w.emit(f'and i16 {word}, {(1 << bits) - 1}')} to i8"))
        return out

    def _source(self, g: Gen, i: int, place: str) -> str:
        """Bit in the group's bytes of element ``i`` of the lane at a place of its group."""
        moved = self.exchange
        spelled = moved.name.replace(".", "_")
        name = f"@{spelled}_{i}"
        if name not in g.functions:
            bits = 8 * moved.lane_bytes * moved.source_lane[:, i] + moved.element_bits * moved.source_element[:, i]
            items = ", ".join(f"i16 {int(bit)}" for bit in bits)
            g.functions[name] = [f"{name} = internal constant [{moved.group} x i16] [ {items} ]"]
        pointer = g.w.emit(f"getelementptr i16, ptr {name}, i64 {place}")
        return g.w.emit(f"zext i16 {g.w.emit(f'load i16, ptr {pointer}')} to i64")

    def _part(self, g: Gen, t: str, start: int, elements: list[str]) -> str:
        """The part of the result that begins at a bit."""
        w, bits, width = g.w, self.exchange.element_bits, bits_of(t)
        held = f"i{-(-bits // 8) * 8}"
        wide = f"i{max(width, 32)}"
        total = ""
        for i, element in enumerate(elements):
            by = i * bits - start
            if by <= -bits or by >= width:
                continue
            value = element if held == wide else w.emit(f"zext {held} {element} to {wide}")
            if by:
                value = w.emit(f"{'shl' if by > 0 else 'lshr'} {wide} {value}, {abs(by)}")
            total = w.emit(f"or {wide} {total}, {value}") if total else value
        if width < 32:
            total = w.emit(f"trunc {wide} {total} to i{width}")
        return total if t == f"i{width}" else w.emit(f"bitcast i{width} {total} to {t}")


def lower(b: Lowering, inst: Inst, name: str) -> list[Part]:
    """``ds.read.tr*``, ``ds.load.tr*``, ``global.load.tr*``."""
    target = b.program.target
    try:
        exchange = matrix_transpose.prepare(name, wave_size=target.wave_size, target=target)
    except SimError as e:
        raise NotCovered(e.what) from None
    address, fields = b.part(inst.operands[0]), fields_of(inst.type)
    if any(not f.plain for f in fields):
        raise NotCovered(f"a transposing load of type {inst.type}")
    if exchange.disputed:
        b.warn(inst, matrix_transpose.ASSUMED)
    made = outputs_of(b, fields, False)
    b.read([address], b.add(TransposeStep(space_of(inst.operands[0]), address, exchange, fields, made)))
    return made
