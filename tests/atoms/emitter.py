"""A small emitter: writes LLVM text line by line, so that tests see what one atom asks for.

It folds integer constants and struct fields, as the protocol promises, and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from flyllvm.codegen.address import access_type
from flyllvm.ir import lltype as ll, types as t
from flyllvm.ir.lltype import LLType
from flyllvm.ir.protocols import LLValue, MemOperand
from flyllvm.target import Target


class Recorder:
    """Attributes: ``lines`` of the body, ``declarations`` of the intrinsics used."""

    def __init__(self, target: str = "gfx942", wave: int | None = None) -> None:
        self.target = Target.parse(target, wave)
        self.lines: list[str] = []
        self.declarations: dict[str, str] = {}
        self.block = "entry"
        self._next = 0
        self._structs: dict[str, list[LLValue]] = {}

    def text(self) -> str:
        return "\n".join(self.lines)

    def made(self, type: LLType, rhs: str, uniform: bool = False) -> LLValue:
        value = LLValue(type, f"%v{self._next}", uniform=uniform)
        self._next += 1
        self.lines.append(f"  {value.text} = {rhs}")
        return value

    def struct_of(self, *fields: LLValue) -> LLValue:
        """A state struct of known fields."""
        value = LLValue(ll.struct(tuple(f.type for f in fields)), f"%s{len(self._structs)}")
        self._structs[value.text] = list(fields)
        return value

    # --- the protocol ---

    def const(self, type: LLType, value: int | float) -> LLValue:
        return LLValue(type, ("true" if value else "false") if type is ll.I1 else str(value), value)

    def zero(self, type: LLType) -> LLValue:
        return LLValue(type, "zeroinitializer")

    def poison(self, type: LLType) -> LLValue:
        return LLValue(type, "poison")

    def bitcast(self, value: LLValue, type: LLType) -> LLValue:
        return value if value.type is type else self.made(type, f"bitcast {value!r} to {type}")

    def binary(self, op: str, a: LLValue, b: LLValue, flags: str = "") -> LLValue:
        if isinstance(a.const, int) and isinstance(b.const, int):
            fold: dict[str, Callable[[int, int], int]] = {
                "mul": lambda x, y: x * y, "add": lambda x, y: x + y, "sub": lambda x, y: x - y,
                "lshr": lambda x, y: x >> y, "shl": lambda x, y: x << y, "and": lambda x, y: x & y,
                "or": lambda x, y: x | y,
            }  # fmt: skip
            return self.const(a.type, fold[op](a.const, b.const) & (1 << a.type.bits) - 1)
        return self.made(a.type, f"{op} {flags + ' ' if flags else ''}{a!r}, {b.text}")

    def cast(self, op: str, value: LLValue, type: LLType) -> LLValue:
        if isinstance(value.const, int) and op in ("trunc", "zext"):
            return self.const(type, value.const & (1 << min(type.bits, value.type.bits)) - 1)
        return self.made(type, f"{op} {value!r} to {type}")

    def icmp(self, predicate: str, a: LLValue, b: LLValue) -> LLValue:
        return self.made(ll.I1, f"icmp {predicate} {a!r}, {b.text}")

    def select(self, cond: LLValue, a: LLValue, b: LLValue) -> LLValue:
        return self.made(a.type, f"select {cond!r}, {a!r}, {b!r}")

    def extract_value(self, value: LLValue, index: int) -> LLValue:
        return self._structs[value.text][index]

    def insert_value(self, value: LLValue, element: LLValue, index: int) -> LLValue:
        fields = list(self._structs[value.text])
        fields[index] = element
        return self.struct_of(*fields)

    def extract_element(self, value: LLValue, index: int) -> LLValue:
        return self.made(value.type.elem, f"extractelement {value!r}, i32 {index}")

    def insert_element(self, value: LLValue, element: LLValue, index: int) -> LLValue:
        return self.made(value.type, f"insertelement {value!r}, {element!r}, i32 {index}")

    def shuffle(self, a: LLValue, b: LLValue | None, mask: Sequence[int]) -> LLValue:
        entries = ", ".join(f"i32 {i}" for i in mask)
        other = b or self.poison(a.type)
        return self.made(
            ll.vec(len(mask), a.type.elem), f"shufflevector {a!r}, {other!r}, <{len(mask)} x i32> <{entries}>"
        )

    def intrinsic(self, name: str, result: LLType, args: Sequence[LLValue]) -> LLValue:
        signature = ", ".join(str(a.type) for a in args)
        self.declarations[name] = f"declare {result} @llvm.{name}({signature})"
        call = f"call {result} @llvm.{name}({', '.join(map(repr, args))})"
        if result is ll.VOID:
            self.lines.append(f"  {call}")
            return LLValue(result, "")
        return self.made(result, call, uniform="readfirstlane" in name)

    def load(self, mem: MemOperand, type: LLType) -> LLValue:
        held = access_type(type)
        where = self.address(mem, held.bits // 8)
        return self.bitcast(self.made(held, f"load {held}, {where!r}, align {self.alignment(mem)}"), type)

    def store(self, value: LLValue, mem: MemOperand) -> None:
        value = self.bitcast(value, access_type(value.type))
        where = self.address(mem, value.type.bits // 8)
        self.lines.append(f"  store {value!r}, {where!r}, align {self.alignment(mem)}")

    def address(self, mem: MemOperand, access_bytes: int) -> LLValue:
        found = mem.base
        for offset in (mem.offset, self.const(ll.I32, mem.const_offset) if mem.const_offset else None):
            if offset is not None:
                uniform = found.uniform and offset.uniform
                found = self.made(found.type, f"getelementptr i8, {found!r}, {offset!r}", uniform)
        return found

    def alignment(self, mem: MemOperand) -> int:
        bits = mem.type.align | mem.const_offset
        return bits & -bits

    def buffer_offset(self, mem: MemOperand, access_bytes: int) -> LLValue:
        const = self.const(ll.I32, mem.const_offset)
        return const if mem.offset is None else self.binary("add", mem.offset, const)

    def guarded(self, pred: LLValue, body: Callable[[], LLValue | None], old: LLValue | None) -> LLValue | None:
        label = f"b{self._next}"
        before = self.block
        self.lines += [f"  br i1 {pred.text}, label %then.{label}, label %join.{label}", f"then.{label}:"]
        self.block = f"then.{label}"
        made = body()
        self.lines += [f"  br label %join.{label}", f"join.{label}:"]
        after, self.block = self.block, f"join.{label}"
        if made is None or old is None:
            return None
        return self.made(made.type, f"phi {made.type} [ {made.text}, %{after} ], [ {old.text}, %{before} ]")

    def raw(self, text: str, type: LLType) -> LLValue:
        return self.made(type, text)


def value(type: LLType, name: str) -> LLValue:
    """A function argument."""
    return LLValue(type, f"%{name}")


def operand(
    elem: t.ScalarType, space: str, name: str, count: int = 1, *, align: int | None = None, offset: str | None = None
) -> MemOperand:
    """A memory operand whose base, and byte offset if named, are function arguments."""
    number = t.SPACES[space]
    moved = None if offset is None else value(ll.I32, offset)
    return MemOperand(t.PtrType(elem, space, align), value(ll.ptr(number), name), moved, count=count)
