"""Writing LLVM IR text of the host: names, labels, and operations on one value or on a vector of lanes."""

from __future__ import annotations

from collections.abc import Callable

#: Lanes that one vector operation of the host handles.
WIDTH = 16


class Writer:
    """Lines of one function, with fresh names.

    Attributes:
        lines: The text so far.
        declared: Declarations that the text needs.
        block: Label of the block that is being written.
    """

    __slots__ = ("_count", "block", "declared", "lines")

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.declared: dict[str, None] = {}
        self.block = ""
        self._count = 0

    def fresh(self, stem: str = "t") -> str:
        """A name that nothing has, without its sigil."""
        self._count += 1
        return f"{stem}{self._count}"

    def emit(self, text: str) -> str:
        """Writes an instruction and returns the name of its result."""
        self._count += 1
        name = f"%t{self._count}"
        self.lines.append(f"  {name} = {text}")
        return name

    def do(self, text: str) -> None:
        """Writes an instruction without a result."""
        self.lines.append(f"  {text}")

    def start(self, label: str) -> None:
        """Begins a block."""
        self.lines.append(f"{label}:")
        self.block = label

    def go(self, label: str) -> None:
        """Ends a block with a jump."""
        self.lines.append(f"  br label %{label}")

    def branch(self, condition: str, yes: str, no: str) -> None:
        """Ends a block with a branch on an ``i1``."""
        self.lines.append(f"  br i1 {condition}, label %{yes}, label %{no}")

    def counted(self, label: str, count: int | str, body: Callable[[str, str], str | None]) -> None:
        """A loop over the numbers below ``count``, which is not 0.

        Args:
            label: Beginning of the loop's label.
            count: Where it ends.
            body: Writes it, from the number and the label that leads to the next one; returns how far that is on, if
                not 1.
        """
        head, after, done, before = self.fresh(label), self.fresh("next"), self.fresh("done"), self.fresh("pre")
        index, following = "%" + self.fresh("number"), "%" + self.fresh("number")
        self.go(before)
        self.start(before)
        self.go(head)
        self.start(head)
        self.lines.append(f"  {index} = phi i64 [ 0, %{before} ], [ {following}, %{after} ]")
        step = body(index, after)
        self.go(after)
        self.start(after)
        self.lines.append(f"  {following} = add nuw nsw i64 {index}, {step or 1}")
        self.branch(self.emit(f"icmp ult i64 {following}, {count}"), head, done)
        self.start(done)

    def call(self, result: str, name: str, *args: tuple[str, str]) -> str:
        """Calls a function or intrinsic of the host and declares it; arguments are ``(type, value)``."""
        self.declared[f"declare {result} @{name}({', '.join(t for t, _ in args)})"] = None
        return self.emit(f"call {result} @{name}({', '.join(f'{t} {v}' for t, v in args)})")

    def at(self, base: str, offset_bytes: int | str) -> str:
        """A pointer ``offset_bytes`` further on."""
        if offset_bytes in (0, "0"):
            return base
        return self.emit(f"getelementptr i8, ptr {base}, i64 {offset_bytes}")


def suffix_of(t: str) -> str:
    """The ending that an overloaded intrinsic has for a type: ``v16f32`` for ``<16 x float>``."""
    if t.startswith("<"):
        count, _, elem = t[1:-1].partition(" x ")
        return f"v{count}{suffix_of(elem)}"
    return {"half": "f16", "float": "f32", "double": "f64"}.get(t, t)


class Values:
    """Operations on values that are all scalars, or all vectors of ``WIDTH`` lanes.

    Attributes:
        w: Where the text goes.
        wide: The values are vectors.
        fault: Label to go to where the kernel is at fault.
    """

    __slots__ = ("_mask", "fault", "mask_of", "w", "wide")

    def __init__(self, w: Writer, wide: bool, fault: str, mask_of: object = None) -> None:
        self.w, self.wide, self.fault = w, wide, fault
        self.mask_of = mask_of
        self._mask: str | None = None

    def type(self, elem: str) -> str:
        """The type of a value whose lanes are ``elem``."""
        return f"<{WIDTH} x {elem}>" if self.wide else elem

    def const(self, elem: str, literal: str | int) -> str:
        """A constant, the same in all lanes."""
        return f"splat ({elem} {literal})" if self.wide else str(literal)

    def op(self, opcode: str, elem: str, *args: str) -> str:
        """An instruction whose operands all have one type: ``add``, ``icmp eq``, ``fadd``, ..."""
        return self.w.emit(f"{opcode} {self.type(elem)} {', '.join(args)}")

    def cast(self, opcode: str, source: str, value: str, target: str) -> str:
        """A conversion; ``bitcast`` between equal types gives the value itself."""
        if source == target:
            return value
        return self.w.emit(f"{opcode} {self.type(source)} {value} to {self.type(target)}")

    def select(self, condition: str, elem: str, yes: str, no: str) -> str:
        """``yes`` in lanes where the ``i1`` condition holds."""
        t = self.type(elem)
        return self.w.emit(f"select {self.type('i1')} {condition}, {t} {yes}, {t} {no}")

    def intrinsic(self, name: str, elem: str, *args: str, extra: tuple[tuple[str, str], ...] = ()) -> str:
        """An overloaded ``llvm.`` intrinsic whose operands and result have one type."""
        t = self.type(elem)
        return self.w.call(t, f"{name}.{suffix_of(t)}", *((t, a) for a in args), *extra)

    def fault_if(self, condition: str) -> None:
        """Goes to the fault label where a running lane has the condition."""
        following = self.w.fresh("ok")
        if self.wide:
            bits = self.w.emit(f"bitcast <{WIDTH} x i1> {condition} to i{WIDTH}")
            mask = self.mask()
            if mask is not None:
                bits = self.w.emit(f"and i{WIDTH} {bits}, {mask}")
            condition = self.w.emit(f"icmp ne i{WIDTH} {bits}, 0")
        self.w.branch(condition, self.fault, following)
        self.w.start(following)

    def mask(self) -> str | None:
        """Bits of the running lanes of this vector; ``None`` where all run."""
        if self._mask is None and callable(self.mask_of):
            self._mask = self.mask_of()
        return self._mask
