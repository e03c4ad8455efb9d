"""The model of an LLVM module that the simulator runs: constants, instructions, blocks, functions."""

from __future__ import annotations

from typing import Any

from .types import Type


class Operand:
    """Base of what an instruction can use."""

    __slots__ = ("type",)
    type: Type


class Reg(Operand):
    """A use of a named value: an argument or the result of an instruction."""

    __slots__ = ("name",)

    def __init__(self, type: Type, name: str) -> None:
        self.type, self.name = type, name

    def __repr__(self) -> str:
        return f"{self.type} %{self.name}"


class Const(Operand):
    """A constant.

    Attributes:
        kind: ``int`` (value: Python int), ``fp`` (value: bit pattern), ``zero``, ``poison``, ``undef``, ``null``,
            ``agg`` (value: tuple of operands), ``bytes``, ``global`` (value: name), ``expr`` (value:
            ``ConstExpr``), ``meta`` (value: text), ``none``.
    """

    __slots__ = ("kind", "value")

    def __init__(self, type: Type, kind: str, value: Any = None) -> None:
        self.type, self.kind, self.value = type, kind, value

    def __repr__(self) -> str:
        return f"{self.type} {self.kind} {self.value}"


class ConstExpr:
    """A constant expression such as ``getelementptr (i8, ptr addrspace(3) @lds, i32 64)``."""

    __slots__ = ("base_type", "op", "operands")

    def __init__(self, op: str, operands: list[Operand], base_type: Type | None = None) -> None:
        self.op, self.operands, self.base_type = op, operands, base_type


class Inst:
    """One instruction.

    Attributes:
        op: Opcode as LLVM spells it.
        name: Name of the result without ``%``, or ``None`` for void.
        type: Type of the result.
        operands: Operands in the order of the text; labels are in ``labels``.
        flags: Words such as ``nuw``, ``fast``, ``inbounds``, ``volatile``.
        labels: Names of target blocks (br, switch, phi).
        callee: Name of the called function without ``@`` (call).
        extra: What only some opcodes have: ``pred``, ``align``, ``base_type``, ``indices``, ``order``, ``scope``...
        line: Line in the ``.ll`` text, from 1.
        dbg: Number of the ``!dbg`` node, or ``None``.
        inlined_from: Call instructions through which inlining brought this one here, innermost first.
    """

    __slots__ = (
        "callee",
        "dbg",
        "extra",
        "flags",
        "id",
        "inlined_from",
        "labels",
        "line",
        "name",
        "op",
        "operands",
        "type",
    )

    def __init__(self, op: str, name: str | None, type: Type, operands: list[Operand], line: int) -> None:
        self.op, self.name, self.type, self.operands, self.line = op, name, type, operands, line
        self.flags: tuple[str, ...] = ()
        self.labels: list[str] = []
        self.callee: str | None = None
        self.extra: dict[str, Any] = {}
        self.dbg: str | None = None
        self.inlined_from: tuple[Inst, ...] = ()
        self.id = 0

    def copy(self) -> Inst:
        """A shallow copy with its own lists."""
        new = Inst(self.op, self.name, self.type, list(self.operands), self.line)
        new.flags, new.labels, new.callee = self.flags, list(self.labels), self.callee
        new.extra, new.dbg, new.inlined_from = dict(self.extra), self.dbg, self.inlined_from
        return new


class Block:
    """A basic block: its instructions end in one terminator."""

    __slots__ = ("insts", "line", "name")

    def __init__(self, name: str, line: int) -> None:
        self.name, self.line = name, line
        self.insts: list[Inst] = []


class Param:
    """A parameter of a function; ``attrs`` maps attribute words to their value (or ``True``)."""

    __slots__ = ("attrs", "name", "type")

    def __init__(self, type: Type, name: str, attrs: dict[str, Any]) -> None:
        self.type, self.name, self.attrs = type, name, attrs


class Function:
    """A function; a declaration has no blocks."""

    __slots__ = ("attrs", "blocks", "dbg", "kernel", "line", "name", "params", "ret")

    def __init__(self, name: str, ret: Type, params: list[Param], line: int) -> None:
        self.name, self.ret, self.params, self.line = name, ret, params, line
        self.blocks: list[Block] = []
        self.attrs: dict[str, str] = {}
        self.kernel = False
        self.dbg: str | None = None


class Global:
    """A global variable."""

    __slots__ = ("align", "constant", "external", "init", "line", "name", "space", "type")

    def __init__(self, name: str, type: Type, space: int, line: int) -> None:
        self.name, self.type, self.space, self.line = name, type, space, line
        self.init: Operand | None = None
        self.constant = False
        self.external = False
        self.align = 0


class Module:
    """A parsed module.

    Attributes:
        lines: The text, line by line.
        aliases: Other names of variables.
        metadata: ``!N`` to the text of its definition.
        attr_groups: ``N`` of ``#N`` to its attributes.
    """

    __slots__ = ("aliases", "attr_groups", "functions", "globals", "lines", "metadata", "named_types", "source_name")

    def __init__(self, text: str, source_name: str) -> None:
        self.lines = text.split("\n")
        self.source_name = source_name
        self.functions: dict[str, Function] = {}
        self.globals: dict[str, Global] = {}
        self.aliases: dict[str, str] = {}
        self.named_types: dict[str, Type] = {}
        self.metadata: dict[str, str] = {}
        self.attr_groups: dict[str, dict[str, str]] = {}

    def kernels(self) -> list[str]:
        """Names of the functions with the ``amdgpu_kernel`` calling convention."""
        return [f.name for f in self.functions.values() if f.kernel and f.blocks]

    def text_of(self, inst: Inst) -> str:
        """The text of an instruction, without its metadata and comment."""
        line = self.lines[inst.line - 1].strip() if 0 < inst.line <= len(self.lines) else inst.op
        return strip_trailing(line)


def strip_trailing(line: str) -> str:
    """Drops ``, !dbg !7`` and ``; comment`` from a line of IR."""
    quoted = False
    for i, char in enumerate(line):
        if char == '"':
            quoted = not quoted
        elif not quoted and (char == ";" or (char == "!" and line[:i].rstrip().endswith(","))):
            return line[:i].rstrip().rstrip(",")
    return line
