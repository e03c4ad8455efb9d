"""Reads the textual fly IR (grammar: docs/ir.md).

Operations without ``loc(...)`` get their own line of the text as the author's location.
"""

from __future__ import annotations

from ..errors import ParseError
from . import ops_atomic, ops_atoms, ops_control, ops_memory, ops_vector, types as t  # noqa: F401 (every operation must be known)
from .core import OPS, Block, Kernel, Module, Op, Value
from .facts import DIVISIBILITY, RANGE, UNKNOWN, derive, merged
from .location import Frame, Location
from .parse_control import SPECIAL
from .parse_forms import read_template
from .parse_types import close_names
from .token_reader import TokenReader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from .facts import Facts
    from .lexer import Token

_ARG_PREFIX = "fly."


def parse_module(text: str, filename: str = "<fly>") -> Module:
    """Reads a module: ``gpu.module @name { ... }``, or kernels alone.

    Args:
        text: The textual IR.
        filename: Name for messages and for the location of operations.

    Raises:
        ParseError: Names the file, line and column, what stands there and what was expected.
    """
    p = Parser(text, filename)
    module = p.module()
    if p.tok.kind != "end":
        raise p.expected("the end of the text")
    return module


def parse_kernel(text: str, filename: str = "<fly>") -> Kernel:
    """Reads a text with exactly one kernel.

    Raises:
        ParseError: The text is malformed, or holds no kernel or several.
    """
    module = parse_module(text, filename)
    if len(module.kernels) != 1:
        names = ", ".join("@" + k.name for k in module.kernels) or "none"
        raise ParseError(
            f"expected one kernel, found {names}", f"{filename}:1:1", "use parse_module for several kernels"
        )
    return module.kernels[0]


class Parser(TokenReader):
    """Reads kernels; names are known from their definition to the end of their region."""

    def __init__(self, text: str, filename: str) -> None:
        super().__init__(text, filename)
        self.values: dict[str, Value] = {}
        self.scopes: list[list[str]] = []
        self.func, self.func_line = "", 0
        self.kernel_attrs: dict[str, Any] = {}

    # --- modules and kernels ---------------------------------------------------------------------

    def module(self) -> Module:
        """A module, or kernels without one."""
        if not self.accept("gpu.module"):
            return Module(self._kernels("end"))
        self.symbol()
        attrs = self.attr_dict() if self.accept("attributes") else {}
        self.expect("{")
        kernels = self._kernels("}")
        self.expect("}")
        return Module(kernels, attrs)

    def _kernels(self, stop: str) -> list[Kernel]:
        kernels: list[Kernel] = []
        while self.tok.kind != "end" and not self.is_(stop):
            start = self.expect("gpu.func", "a module holds kernels: gpu.func @name(...) kernel { ... }")
            kernel = self.kernel(start)
            if any(k.name == kernel.name for k in kernels):
                raise self.fail(f"kernel @{kernel.name} is defined twice", "give each kernel its own name", start)
            kernels.append(kernel)
        return kernels

    def kernel(self, start: Token) -> Kernel:
        """A kernel, from its name on."""
        name = self.symbol()
        line, col = self.source.line_col(start.pos)
        kernel = Kernel(name, Location((Frame(self.source.filename, line, name, line, col),)))
        kernel.attrs = {}
        self.func, self.func_line = name, line
        self.scopes.append([])
        self.expect("(")
        while not self.accept(")"):
            if kernel.args:
                self.expect(",")
            self._argument(kernel)
        self.expect("kernel", "write gpu.func @name(...) kernel [attributes {...}] { ... }")
        if self.accept("attributes"):
            kernel.attrs = self.attr_dict()
        self.kernel_attrs = kernel.attrs
        kernel.attrs.setdefault("stage", "fly")
        self.expect("{")
        self.ops_of(kernel.body)
        self.expect("}")
        self.close_scope()
        kernel.loc = self.location() or kernel.loc
        return kernel

    def _argument(self, kernel: Kernel) -> None:
        token = self.take("value", "an argument such as %a")
        self.expect(":")
        type_ = self.type()
        attrs = self.attr_dict() if self.is_("{") else {}
        for key in attrs:
            if not key.startswith(_ARG_PREFIX):
                raise self.fail(f"argument attribute {key!r}", f"argument attributes start with {_ARG_PREFIX!r}", token)
        attrs = {key[len(_ARG_PREFIX) :]: v for key, v in attrs.items()}
        div = attrs.get("divisibility", 1)
        name = attrs.pop("name", token.text[1:])
        if not isinstance(name, str):
            raise self.fail(f"fly.name is {name!r}", "give a quoted text", token)
        value = kernel.add_arg(type_, name)
        kernel.arg_attrs[-1].update(attrs)
        facts = {DIVISIBILITY: div, RANGE: attrs.get("range")}
        value.divisibility, value.range = self.facts_of(facts, UNKNOWN, token)
        kernel.arg_attrs[-1].pop("range", None)
        self.define(token, value)

    # --- values ----------------------------------------------------------------------------------

    def define(self, token: Token, value: Value, name: str | None = None) -> None:
        """Makes a value known under a name until the end of the innermost region."""
        name = name or token.text
        if name in self.values:
            raise self.fail(f"{name} is defined already", "give each value its own name", token)
        self.values[name] = value
        self.scopes[-1].append(name)
        bare = name[1:].partition("#")[0]
        if not value.name and not bare.isdecimal() and not name.partition("#")[2].strip("0"):
            value.name = bare

    def close_scope(self) -> None:
        """Forgets the names of the innermost region."""
        for name in self.scopes.pop():
            del self.values[name]

    def use(self) -> Value:
        """A value that is used."""
        token = self.take("value", "a value such as %0")
        found = self.values.get(token.text)
        if found is None:
            near = close_names(token.text, self.values) or "none"
            fix = f"define it before, in this region or around it; known names like it: {near}"
            raise self.fail(f"{token.text} is not defined here", fix, token)
        return found

    def uses(self, stop: str) -> list[Value]:
        """Values separated by commas, up to a mark that is taken."""
        out: list[Value] = []
        while not self.accept(stop):
            if out:
                self.expect(",")
            out.append(self.use())
        return out

    def check_types(
        self, values: Sequence[Value], types: Sequence[t.Type], token: Token, what: str = "operand"
    ) -> None:
        """Compares the types a text gives with those the values have."""
        if len(values) != len(types):
            raise self.fail(f"{len(types)} types for {len(values)} {what}s", "write one type for each", token)
        for i, (v, type_) in enumerate(zip(values, types)):
            if v.type != type_:
                raise self.fail(f"{what} {i} has type {v.type}, the text says {type_}", "write the type it has", token)

    # --- operations ------------------------------------------------------------------------------

    def ops_of(self, block: Block) -> None:
        """Operations up to a closing brace."""
        while not self.is_("}"):
            block.append(self.op(block.depth))

    def region(self, arg_types: Sequence[tuple[Token, t.Type]], depth: int, first: Facts = UNKNOWN) -> Block:
        """``{ ops }``; the braces are taken, the arguments are known inside, ``first`` is known of the first one."""
        self.deeper()
        self.expect("{")
        self.scopes.append([])
        block = Block((), None, depth)
        for token, type_ in arg_types:
            self.define(token, block.add_arg(type_))
        if block.args:
            block.args[0].divisibility, block.args[0].range = first
        if self.tok.kind == "label":
            if arg_types:
                raise self.fail("this region has its arguments already", "leave the label out")
            self._label(block)
        self.ops_of(block)
        self.expect("}")
        self.close_scope()
        self.up()
        return block

    def _label(self, block: Block) -> None:
        self.advance()
        if self.accept("("):
            while not self.accept(")"):
                if block.args:
                    self.expect(",")
                token = self.take("value", "a block argument such as %x")
                self.expect(":")
                self.define(token, block.add_arg(self.type()))
        self.expect(":")

    def op(self, depth: int) -> Op:
        """One operation with its results and location."""
        names = self._left()
        token = self.tok
        if token.kind == "text":
            op = self._generic(depth)
        elif token.kind == "word":
            self.advance()
            cls = self._class(token, token.text)
            read = SPECIAL.get(cls)
            op = read(self, cls, token, depth) if read is not None else read_template(self, cls, token)
        else:
            raise self.expected("an operation such as arith.addi")
        if len(op.results) == 1 and not op.regions:
            self._tell(op, token)
        self._check_attrs(op, token)
        self._name_results(op, names, token)
        op.loc = self.location() or self.own_location(token)
        return op

    def own_location(self, token: Token) -> Location:
        """The place of a token as the author's location."""
        line, col = self.source.line_col(token.pos)
        return Location((Frame(self.source.filename, line, self.func, self.func_line, col),))

    def _tell(self, op: Op, token: Token) -> None:
        """Gives the result the facts that follow and those that the text adds."""
        said = {key: op.attrs.pop(key) for key in (DIVISIBILITY, RANGE) if key in op.attrs}
        known = [(v.divisibility, v.range) for v in op.operands]
        result = op.results[0]
        result.divisibility, result.range = self.facts_of(said, derive(op, known, self.kernel_attrs), token)

    def facts_of(self, said: dict[str, Any], have: Facts, token: Token) -> Facts:
        """Facts that follow, replaced by those the text says."""
        div, rng = merged(have, said)
        if type(div) is not int or div < 1:
            raise self.fail(f"fly.divisibility is {div!r}", "give a positive integer", token)
        good = isinstance(rng, tuple) and len(rng) == 2 and all(type(n) is int for n in rng) and rng[0] <= rng[1]
        if rng is not None and not good:
            raise self.fail(f"fly.range is {rng!r}", "give array<i32: LOWEST, HIGHEST>", token)
        return div, rng

    def _check_attrs(self, op: Op, token: Token) -> None:
        for key in op.attrs:
            if key not in op.attr_names and "." not in key:
                near = close_names(key, op.attr_names) or "none"
                raise self.fail(f"{op.name} has no attribute {key!r}", f"its attributes: {near}", token)

    def _class(self, token: Token, name: str) -> type[Op]:
        cls = OPS.get(name)
        if cls is None:
            raise self.fail(f"unknown operation {name!r}", f"known operations: {close_names(name, OPS)}", token)
        return cls

    def _left(self) -> list[tuple[Token, int]]:
        """``%a, %b:2 =``: names with the number of results each stands for (0: one, without ``#``)."""
        names: list[tuple[Token, int]] = []
        while self.tok.kind == "value":
            token = self.advance()
            count = 0
            if self.accept(":"):
                count = self.integer("a number of results")
                if not 1 <= count <= 1 << 16:
                    raise self.fail(f"{count} results", "write how many results the name stands for", token)
            names.append((token, count))
            if not self.accept(","):
                self.expect("=")
                return names
        if names:
            raise self.expected("a result name")
        return names

    def _name_results(self, op: Op, names: list[tuple[Token, int]], token: Token) -> None:
        given = sum(count or 1 for _, count in names)
        if names and given != len(op.results):
            raise self.fail(
                f"{op.name} has {len(op.results)} results, {given} are named", "name each result", names[0][0]
            )
        i = 0
        for name, count in names:
            for k in range(count or 1):
                self.define(name, op.results[i], f"{name.text}#{k}" if count else None)
                i += 1

    def _generic(self, depth: int) -> Op:
        """``"name"(%a) ({ ... }) {attrs} : (T) -> R``."""
        token = self.tok
        cls = self._class(token, self.text("an operation"))
        self.expect("(")
        operands = self.uses(")")
        regions: list[Block] = []
        if self.accept("("):
            while not self.accept(")"):
                if regions:
                    self.expect(",")
                regions.append(self.region((), depth + 1))
        return self.finish(cls, operands, self.attr_dict() if self.is_("{") else {}, token, regions)

    def finish(
        self, cls: type[Op], operands: list[Value], attrs: dict[str, Any], token: Token, regions: Sequence[Block] = ()
    ) -> Op:
        """Makes the operation after reading ``: (T) -> R``."""
        self.expect(":")
        types = self.type_list()
        self.expect("->")
        results = self.result_types()
        self.check_types(operands, types, token)
        return cls(operands, results, attrs, regions)
