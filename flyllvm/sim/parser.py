"""Parser of LLVM IR modules."""

from __future__ import annotations

from typing import Any

from . import types as ty
from .dominance import broken_use
from .ir import Block, Const, Function, Global, Inst, Module, Operand, Param, Reg
from .parse_inst import TERMINATORS, InstParser

_GLOBAL_END = frozenset(("section", "comdat", "align", "partition", "code_model", "no_sanitize_address"))


def parse_module(text: str, source_name: str = "<llvm-ir>") -> Module:
    """Reads the text of an LLVM module.

    Raises:
        ParseError: The text is no well-formed module; the error has line and column.
    """
    return _ModuleParser(text, source_name).parse()


class _ModuleParser(InstParser):
    __slots__ = ("aliases",)

    def __init__(self, text: str, source_name: str) -> None:
        super().__init__(text, source_name)
        self.aliases: dict[str, str] = {}

    def parse(self) -> Module:
        while self.kind() != "eof":
            kind, text = self.kind(), self.peek()
            if kind == "word" and text == "define":
                self._define()
            elif kind == "word" and text == "declare":
                self._declare()
            elif kind == "global":
                self._global()
            elif kind == "local":
                self._named_type_definition()
            elif kind == "word" and text == "attributes":
                self._attributes()
            elif kind == "word" and text in ("target", "source_filename", "module", "uselistorder", "uselistorder_bb"):
                self._skip_line()
            elif kind == "word" and text.startswith("$"):
                self._skip_line()
            elif text == "^":
                self._skip_line()
            else:
                self.error(f"expected a definition, found {text!r}")
        self._resolve_aliases()
        for function in self.module.functions.values():
            self._resolve_attrs(function)
        return self.module

    def _skip_line(self) -> None:
        line = self.line()
        while self.kind() != "eof" and self.line() == line:
            self.index += 1

    def _named_type_definition(self) -> None:
        name = self.next()
        self.expect("=")
        self.expect("type")
        found = self.module.named_types.get(name)
        if found is None:
            found = self.module.named_types[name] = ty.StructType(None, name=f"%{name}")
        if self.accept("opaque"):
            return
        body = self.parse_type()
        if isinstance(body, ty.StructType) and isinstance(found, ty.StructType):
            found.elems, found.packed = body.elems, body.packed

    def _attributes(self) -> None:
        self.next()
        name = self.expect_kind("attr", "an attribute group")
        self.expect("=")
        self.expect("{")
        group: dict[str, str] = {}
        while not self.accept("}"):
            token = self.next()
            key = token[1:-1] if token.startswith('"') else token
            value = ""
            if self.accept("="):
                value = self.next().strip('"')
            elif self.at("("):
                self.skip_balanced()
            group[key] = value
        self.module.attr_groups[name] = group

    def _resolve_attrs(self, function: Function) -> None:
        for key in [k for k in function.attrs if k.startswith("#")]:
            del function.attrs[key]
            function.attrs.update(self.module.attr_groups.get(key, {}))

    def _global(self) -> None:
        line, name = self.line(), self.next()
        self.expect("=")
        words, space = [], 0
        while not (self.at("global") or self.at("constant")):
            if self.at("alias"):
                return self._alias(name)
            if self.at("ifunc"):
                self.error(f"@{name}: an ifunc has no meaning in the simulator", "use the function itself")
            word = self.expect_kind("word", "'global' or 'constant'")
            words.append(word)
            if self.kind() == "str":  # code_model "large"
                self.next()
            if word == "addrspace":
                self.expect("(")
                space = self.number()
                self.expect(")")
            elif self.at("("):
                self.skip_balanced()
        constant = self.next() == "constant"
        variable = Global(name, self.parse_type(), space, line)
        variable.constant = constant
        variable.external = "external" in words or "extern_weak" in words
        if not variable.external:
            variable.init = self.parse_value(variable.type)
        while self.accept(","):
            if self.accept("align"):
                variable.align = self.number()
            elif self.kind() == "meta":
                self.next()
                self.parse_value(ty.METADATA)
            else:
                self.next()
                if self.kind() == "str":
                    self.next()
                elif self.at("("):
                    self.skip_balanced()
        while self.kind() == "attr":
            self.next()
        if name in self.module.globals:
            self.error(f"@{name} is defined twice")
        self.module.globals[name] = variable

    def _alias(self, name: str) -> None:
        """``@a = alias T, ptr @b``: another name for a variable or function of this module."""
        self.next()
        self.parse_type()
        self.expect(",")
        target = self.parse_typed()
        if not isinstance(target, Const) or target.kind != "global":
            self.error(f"@{name} stands for an expression", "give it the name of a variable or function")
        while self.accept(","):
            self.next()
            self.next()
        self.aliases[name] = str(target.value)

    def _resolve_aliases(self) -> None:
        for name in self.aliases:
            target, seen = name, {name}
            while target in self.aliases and self.aliases[target] not in seen:
                target = self.aliases[target]
                seen.add(target)
            if target in self.module.globals:
                self.module.aliases[name] = target
            elif target in self.module.functions:
                self.module.functions[name] = self.module.functions[target]

    # ---- functions

    def _declare(self) -> None:
        self.next()
        while self.kind() == "meta":
            self.next()
            self.parse_value(ty.METADATA)
        function = self._header(one_line=True)
        self.module.functions.setdefault(function.name, function)

    def _header(self, one_line: bool) -> Function:
        kernel = False
        while not self.at_type():
            words = self.skip_attrs()
            kernel = kernel or "amdgpu_kernel" in words
            if not words:
                self.error(f"expected the type of a function, found {self.peek()!r}")
        result = self.parse_type()
        line = self.line()
        name = self.expect_kind("global", "a function name")
        function = Function(name, result, self._params(), line)
        function.kernel = kernel
        function.attrs = {k: v if isinstance(v, str) else "" for k, v in self._function_attrs(one_line).items()}
        return function

    def _function_attrs(self, one_line: bool) -> dict[str, Any]:
        attrs: dict[str, Any] = {}
        while not self.at("{"):
            before = self.index
            if self.at("prefix") or self.at("prologue") or self.at("personality"):
                self.next()
                self.parse_typed()
            attrs.update(self.skip_attrs(one_line))
            if self.kind() == "meta":
                key = self.next()
                value = self.parse_value(ty.METADATA)
                attrs[key] = getattr(value, "value", "")
            if self.index == before:
                break
        return attrs

    def _params(self) -> list[Param]:
        self.expect("(")
        params: list[Param] = []
        number = 0
        while not self.accept(")"):
            if self.accept("..."):
                self.expect(")")
                break
            t = self.parse_type()
            attrs = self.skip_attrs()
            if self.kind() == "local":
                name = self.next()
            else:
                name = str(number)
            if name == str(number):
                number += 1
            params.append(Param(t, name, attrs))
            if not self.at(")"):
                self.expect(",")
        return params

    def _define(self) -> None:
        self.next()
        function = self._header(one_line=False)
        function.dbg = function.attrs.pop("!dbg", None)
        if function.name in self.module.functions and self.module.functions[function.name].blocks:
            self.error(f"@{function.name} is defined twice")
        self.module.functions[function.name] = function
        self.expect("{")
        _Body(self, function).parse()


class _Body:
    """Reads the blocks of one function and checks names, types and phis."""

    def __init__(self, parser: _ModuleParser, function: Function) -> None:
        self.parser, self.function = parser, function
        self.defined: dict[str, ty.Type] = {p.name: p.type for p in function.params}
        self.counter = sum(p.name.isdigit() for p in function.params)
        self.uses: list[tuple[Reg, int]] = []

    def parse(self) -> None:
        parser, blocks = self.parser, self.function.blocks
        names: set[str] = set()
        while not parser.accept("}"):
            line = parser.line()
            if parser.kind() == "eof":
                parser.error("the text ends in the middle of a definition", "close the function with '}'")
            if parser.kind() == "label":
                name = parser.next()
            else:
                if blocks:
                    parser.error("an instruction after the terminator of its block", "start a block with a label")
                name = self._number()
            if name.isdigit():
                self.counter = max(self.counter, int(name) + 1)
            if name in names:
                parser.error(f"block %{name} is defined twice")
            names.add(name)
            block = Block(name, line)
            blocks.append(block)
            self._block(block)
        if not blocks:
            parser.error(f"@{self.function.name} has no blocks")
        self._check(names)

    def _number(self) -> str:
        self.counter += 1
        return str(self.counter - 1)

    def _block(self, block: Block) -> None:
        parser = self.parser
        while True:
            if parser.kind() == "record":
                parser.next()
                parser.skip_balanced()
                continue
            if parser.kind() == "label" or parser.at("}"):
                parser.error(f"block %{block.name} has no terminator", "end it with br, switch, ret or unreachable")
            start = parser.index
            inst = parser.parse_inst()
            if inst.type is not ty.VOID:
                if inst.name is None:
                    inst.name = self._number()
                elif inst.name.isdigit():
                    self.counter = max(self.counter, int(inst.name) + 1)
                if inst.name in self.defined:
                    parser.error_at(parser.tokens[start][2], f"%{inst.name} is defined twice")
                self.defined[inst.name] = inst.type
            block.insts.append(inst)
            self._note_uses(inst, start)
            if inst.op in TERMINATORS:
                return

    def _note_uses(self, inst: Inst, start: int) -> None:
        position = self.parser.tokens[start][2]
        for operand in inst.operands:
            self._note(operand, position)

    def _note(self, operand: Operand, position: int) -> None:
        if isinstance(operand, Reg):
            self.uses.append((operand, position))
        elif isinstance(operand, Const) and operand.kind == "agg":
            for elem in operand.value:
                self._note(elem, position)

    def _check(self, names: set[str]) -> None:
        parser, defined = self.parser, self.defined
        for operand, position in self.uses:
            if operand.type is ty.METADATA:
                continue
            found = defined.get(operand.name)
            if found is None:
                parser.error_at(position, f"use of undefined value %{operand.name}", "define it before its use")
            if found is not operand.type:
                parser.error_at(position, f"%{operand.name} is of type {found}, used as {operand.type}")
        predecessors: dict[str, list[str]] = {name: [] for name in names}
        for block in self.function.blocks:
            for label in block.insts[-1].labels:
                if label not in names:
                    self._error(block.insts[-1], f"branch to undefined block %{label}")
                predecessors[label].append(block.name)
        for block in self.function.blocks:
            self._check_phis(block, set(predecessors[block.name]))
        broken = broken_use(self.function)
        if broken is not None:
            self._error(broken[0], f"the definition of %{broken[1]} does not dominate this use")

    def _check_phis(self, block: Block, predecessors: set[str]) -> None:
        leading = True
        for inst in block.insts:
            if inst.op != "phi":
                leading = False
                continue
            if not leading:
                self._error(inst, f"phi %{inst.name} stands after other instructions of its block")
            if set(inst.labels) != predecessors:
                self._error(
                    inst,
                    f"phi %{inst.name} names the blocks {_names(inst.labels)}, but %{block.name} is entered from "
                    f"{_names(predecessors)}",
                )

    def _error(self, inst: Inst, what: str) -> None:
        self.parser.error_at(self.parser.line_starts[inst.line - 1], what)


def _names(labels: Any) -> str:
    return ", ".join(sorted(f"%{label}" for label in set(labels))) or "nowhere"
