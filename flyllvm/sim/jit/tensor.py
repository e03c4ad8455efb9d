"""Tensor copies of gfx1250, row by row: the meaning is that of `sim.tensor`, which has the fields of a descriptor.

What is wrong with a descriptor is left to the NumPy engine, and so is an arrival at a barrier.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ..ir import Inst
from ..tensor import EXTENTS, FIELDS, MOST_REPEATS, MOST_ROWS, STRIDES, TILE
from .access import Memory
from .cross import Lanes
from .parts import Part
from .steps import Step

if TYPE_CHECKING:
    from .gen import Gen
    from .lower import Lowering

# Interval of a tile without gaps in LDS, as a power of two: no tile is that large.
_NO_GAPS = 62


class _Tile:
    """What a descriptor says, as values of the host (i64, flags as i1).

    Attributes:
        lds, address: Where the tile is.
        size: Bytes of an element, as a power of two.
        tile, extents, strides: For each dimension, innermost first; in elements.
        gathers: Rows come from ``rows``, a pointer, as words where ``wide_rows``.
        repeats, near_step, far_step: How often the tile is repeated, and how far apart in elements.
        interval, amount: Gaps in LDS: log2 of the bytes between them, and their bytes.
    """

    def __init__(self, g: Gen, words: list[list[str]], loads: bool) -> None:
        self.g, self._words = g, words
        w = g.w
        value = {name: self._field(*where) for name, where in FIELDS.items()}
        self.lds, self.address, self.size = value["lds"], value["address"], value["size"]
        self.gathers, self.wide_rows = self._is(value["gathers"]), self._is(value["wide_rows"])
        iterates = w.emit(f"and i1 {self._is(value['iterates'])}, {w.emit(f'xor i1 {self.gathers}, true')}")
        tile, extents = [self._field(*f) for f in TILE], [self._field(*f) for f in EXTENTS]
        self.strides = ["1", *(self._field(*f) for f in STRIDES)]
        self.repeats = self._pick(iterates, w.emit(f"add i64 {tile[3]}, 1"), "1")
        self.near_step, self.far_step = (self._pick(iterates, x, "0") for x in (extents[3], self.strides[3]))
        flat = w.emit(f"or i1 {self.gathers}, {iterates}")
        tile[2:] = [self._pick(self.gathers, "0", tile[2]), *(self._pick(flat, "0", n) for n in tile[3:])]
        used = [self._is(n) for n in tile]
        nothing = w.emit(f"xor i1 {w.emit(f'select i1 {self.gathers}, i1 {used[1]}, i1 true')}, true")
        self.valid = w.emit(f"and i1 {used[0]}, {w.emit(f'xor i1 {nothing}, true')}")
        bounded = [used[0], w.emit(f"or i1 {used[1]}, {self.gathers}"), *used[2:]]
        self.extents = [extents[0], *(self._pick(u, e, "1") for u, e in zip(bounded[1:], extents[1:], strict=True))]
        most = self._pick(self.wide_rows, str(MOST_ROWS[1]), str(MOST_ROWS[0]))
        many = w.emit(f"and i1 {self.gathers}, {w.emit(f'icmp ugt i64 {tile[1]}, {most}')}")
        self.tile = [self._pick(u, n, "1") for u, n in zip(used, tile, strict=True)]
        self.row_bytes = w.emit(f"shl i64 {self.tile[0]}, {self.size}")
        self.notifies = self._is(value["notifies"])
        faults = [
            w.emit(f"icmp ne i64 {value['kind']}, 2"), w.emit(f"icmp ne i64 {value['count']}, 1"),
            self._is(value["restores"]), many, w.emit(f"icmp ugt i64 {self.repeats}, {MOST_REPEATS}"),
        ]  # fmt: skip
        if loads:
            pads = self._is(value["pads"])
            odd = self._is(w.emit(f"and i64 {self.row_bytes}, 3"))
            faults.append(w.emit(f"and i1 {pads}, {odd}"))
            self.interval = self._pick(pads, w.emit(f"add i64 {value['interval']}, 3"), str(_NO_GAPS))
            dwords = w.emit(f"add i64 {value['amount']}, 1")
            self.amount = self._pick(pads, w.emit(f"shl i64 {dwords}, 2"), "0")
        self.bad = faults[0]
        for fault in faults[1:]:
            self.bad = w.emit(f"or i1 {self.bad}, {fault}")
        self.asked = self._is(value["count"])

    def _field(self, group: int, low: int, width: int) -> str:
        if group >= len(self._words):
            return "0"
        w, (at, shift) = self.g.w, divmod(low, 32)
        total = w.emit(f"zext i32 {self._words[group][at]} to i64")
        if shift + width > 32:
            high = w.emit(f"zext i32 {self._words[group][at + 1]} to i64")
            total = w.emit(f"or i64 {total}, {w.emit(f'shl i64 {high}, 32')}")
        return w.emit(f"and i64 {w.emit(f'lshr i64 {total}, {shift}')}, {(1 << width) - 1}")

    def _is(self, value: str) -> str:
        return self.g.w.emit(f"icmp ne i64 {value}, 0")

    def _pick(self, condition: str, yes: str, no: str) -> str:
        return self.g.w.emit(f"select i1 {condition}, i64 {yes}, i64 {no}")

    def list_rows(self) -> str:
        """A place with the rows of gather mode."""
        w, rows = self.g.w, self.g.variable("[8 x i32]", "zeroinitializer")
        for i, word in enumerate(word for group in self._words[2:] for word in group):
            w.do(f"store i32 {word}, ptr {w.at(rows, 4 * i)}")
        return rows

    def row(self, rows: str, index: str) -> str:
        """Number of a row of the tile in the tensor."""
        w = self.g.w
        place = self._pick(self.gathers, index, "0")
        wide = w.emit(f"load i32, ptr {w.emit(f'getelementptr i32, ptr {rows}, i64 {place}')}")
        short = w.emit(f"load i16, ptr {w.emit(f'getelementptr i16, ptr {rows}, i64 {place}')}")
        listed = self._pick(self.wide_rows, w.emit(f"zext i32 {wide} to i64"), w.emit(f"zext i16 {short} to i64"))
        return self._pick(self.gathers, listed, index)


class TensorStep(Step):
    """A tensor copy of every wave with a running lane."""

    __slots__ = ("groups", "loads")

    def __init__(self, groups: list[list[Part]], loads: bool) -> None:
        self.groups, self.loads = groups, loads

    def emit(self, g: Gen) -> None:
        """Writes the step."""
        parts = [p for group in self.groups for p in group]
        places = ["" if p.uniform else g.slot(p) for p in parts]
        varying = [(p, place) for p, place in zip(parts, places, strict=True) if place]
        if varying:
            _check_same(g, [p for p, _ in varying], [place for _, place in varying])

        def body(wave: str) -> None:
            w = g.w
            lane = w.emit(f"mul i64 {wave}, {g.wave_size}")
            if g.masked:
                t = f"i{g.wave_size}"
                first = w.call(t, f"llvm.cttz.{t}", (t, g.wave_bits(wave)), ("i1", "true"))
                lane = w.emit(f"add i64 {lane}, {first if t == 'i64' else w.emit(f'zext {t} {first} to i64')}")
            values = iter([g.get(p, lane, place) for p, place in zip(parts, places, strict=True)])
            _copy(g, [[next(values) for _ in group] for group in self.groups], self.loads)

        g.each_wave(body)


def _check_same(g: Gen, parts: list[Part], places: list[str]) -> None:
    """Goes to the fault label where a descriptor differs between running lanes of a wave."""

    def body(lane: str) -> None:
        lanes, w = Lanes(g, lane, parts, places), g.w
        first, differs = lanes.first(), ""
        for i, part in enumerate(parts):
            here = w.emit(f"icmp ne {part.type} {lanes.own(i)}, {lanes.of(i, first)}")
            differs = w.emit(f"or i1 {differs}, {here}") if differs else here
        same = w.fresh("same")
        w.branch(differs, g.fault_label, same)
        w.start(same)

    g.each_lane(body)


def _copy(g: Gen, words: list[list[str]], loads: bool) -> None:
    w = g.w
    tile = _Tile(g, words, loads)
    asked, good, quiet, go, done = (w.fresh(s) for s in ("asked", "good", "quiet", "tile", "copied"))
    w.branch(tile.asked, asked, done)
    w.start(asked)
    w.branch(tile.bad, g.fault_label, good)
    w.start(good)
    w.branch(tile.notifies, "strange", quiet)
    w.start(quiet)
    w.branch(tile.valid, go, done)
    w.start(go)
    rows, near = tile.list_rows(), g.variable("i64")
    spaces = _Spaces(g, loads)

    def turn(number: str) -> None:
        step = w.emit(f"mul i64 {number}, {tile.near_step}")
        w.do(f"store i64 {w.emit(f'shl i64 {step}, {tile.size}')}, ptr {near}")
        _dimension(g, tile, 4, w.emit(f"mul i64 {number}, {tile.far_step}"), "true", rows, row)

    def row(far: str, inside: str) -> None:
        start = w.emit(f"load i64, ptr {near}")
        count = w.call("i64", "llvm.umin.i64", ("i64", tile.tile[0]), ("i64", tile.extents[0]))
        held = w.emit(f"select i1 {inside}, i64 {w.emit(f'shl i64 {count}, {tile.size}')}, i64 0")
        address = w.emit(f"add i64 {tile.address}, {w.emit(f'shl i64 {far}, {tile.size}')}")
        (_load_row if loads else _store_row)(g, tile, spaces, start, address, held)
        w.do(f"store i64 {w.emit(f'add i64 {start}, {tile.row_bytes}')}, ptr {near}")

    g.w.counted("turn", tile.repeats, lambda number, _: turn(number))
    w.go(done)
    w.start(done)


def _dimension(
    g: Gen, tile: _Tile, axis: int, far: str, inside: str, rows: str, row: Callable[[str, str], None]
) -> None:
    """The loop over a dimension that is not the innermost: far elements so far, and whether the tensor has them."""
    w = g.w

    def body(index: str, after: str) -> None:
        at = tile.row(rows, index) if axis == 1 else index
        there = w.emit(f"add i64 {far}, {w.emit(f'mul i64 {at}, {tile.strides[axis]}')}")
        within = w.emit(f"and i1 {inside}, {w.emit(f'icmp ult i64 {at}, {tile.extents[axis]}')}")
        if axis == 1:
            row(there, within)
        else:
            _dimension(g, tile, axis - 1, there, within, rows, row)

    g.w.counted(f"axis{axis}_", tile.tile[axis], body)


class _Spaces:
    """Both sides of a copy; bounds are checked for a run of bytes at once."""

    def __init__(self, g: Gen, loads: bool) -> None:
        self.g, self.loads = g, loads
        self.heap, self.lds = Memory(g, 1, 0, not loads), Memory(g, 3, 0, loads)

    def in_heap(self, address: str, byte_count: str) -> str:
        """Pointer to bytes of global memory."""
        self.heap.size = byte_count
        self.heap.check(address, "global", "%regions", "%region_count")
        return self.heap.pointer(address)

    def in_lds(self, address: str, byte_count: str) -> str:
        """Pointer to bytes of LDS."""
        self.lds.size = byte_count
        self.lds.check(address, "lds", "@lds_regions", "%lds_count")
        return self.lds.pointer(address)

    def move(self, target: str, source: str, byte_count: str) -> None:
        """Copies bytes."""
        w = self.g.w
        w.declared["declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)"] = None
        w.do(f"call void @llvm.memcpy.p0.p0.i64(ptr {target}, ptr {source}, i64 {byte_count}, i1 false)")

    def clear(self, target: str, byte_count: str) -> None:
        """Zeros for bytes that the tensor does not have."""
        w = self.g.w
        w.declared["declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)"] = None
        w.do(f"call void @llvm.memset.p0.i64(ptr {target}, i8 0, i64 {byte_count}, i1 false)")


def _load_row(g: Gen, tile: _Tile, spaces: _Spaces, start: str, address: str, held: str) -> None:
    """A row into LDS, in pieces between the gaps; ``held`` bytes of it come from memory, the rest is zero."""
    w = g.w
    every = w.emit(f"shl i64 1, {tile.interval}")

    def one(at: str, _: str) -> str:
        near = w.emit(f"add i64 {start}, {at}")
        past = w.emit(f"and i64 {near}, {w.emit(f'sub i64 {every}, 1')}")
        left = w.emit(f"sub i64 {tile.row_bytes}, {at}")
        piece = w.call("i64", "llvm.umin.i64", ("i64", left), ("i64", w.emit(f"sub i64 {every}, {past}")))
        gaps = w.emit(f"mul i64 {w.emit(f'lshr i64 {near}, {tile.interval}')}, {tile.amount}")
        place = w.emit(f"add i64 {tile.lds}, {w.emit(f'add i64 {near}, {gaps}')}")
        target = spaces.in_lds(place, piece)
        rest = w.call("i64", "llvm.usub.sat.i64", ("i64", held), ("i64", at))
        real = w.call("i64", "llvm.umin.i64", ("i64", rest), ("i64", piece))
        some, zeros = w.fresh("some"), w.fresh("zeros")
        w.branch(w.emit(f"icmp ne i64 {real}, 0"), some, zeros)
        w.start(some)
        spaces.move(target, spaces.in_heap(w.emit(f"add i64 {address}, {at}"), real), real)
        w.go(zeros)
        w.start(zeros)
        spaces.clear(w.emit(f"getelementptr i8, ptr {target}, i64 {real}"), w.emit(f"sub i64 {piece}, {real}"))
        return piece

    w.counted("piece", tile.row_bytes, one)


def _store_row(g: Gen, tile: _Tile, spaces: _Spaces, start: str, address: str, held: str) -> None:
    """The part of a row that the tensor has, out of LDS."""
    w, some, done = g.w, g.w.fresh("some"), g.w.fresh("row")
    w.branch(w.emit(f"icmp ne i64 {held}, 0"), some, done)
    w.start(some)
    source = spaces.in_lds(w.emit(f"add i64 {tile.lds}, {start}"), held)
    spaces.move(spaces.in_heap(address, held), source, held)
    w.go(done)
    w.start(done)


def lower(b: Lowering, inst: Inst) -> None:
    """``tensor.load.to.lds`` and ``tensor.store.from.lds``, with two or four groups."""
    name = inst.callee or ""
    groups = [b.parts(o) for o in inst.operands[: 2 if name.endswith(".d2") else 4]]
    b.read([p for group in groups for p in group], b.add(TensorStep(groups, ".load." in name)))
