"""Text of the fly IR, in the spelling of the fly dialect and of MLIR (grammar: docs/ir.md).

What the printer writes the parser reads, and printing that gives the same text.  An operation that breaks its own
rules prints too, in the generic form, so that a dump always shows what is there.
"""

from __future__ import annotations

import re

from ..errors import VerifyError
from .attr_text import NAME, dict_text, entry_text, quote
from .core import MAX_DEPTH
from .facts import UNKNOWN, derive, merged, missing
from .forms import Form, form_of
from .ops_control import Yield
from .print_forms import SLOTS, SPECIAL, function_type
from .types import IntType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from .core import Block, Kernel, Module, Op, Value
    from .facts import Facts
    from .location import Frame, Location

_BAD = re.compile(r"[^\w$.]", re.ASCII)


def print_kernel(kernel: Kernel, *, locations: bool = False) -> str:
    """Text of one kernel.

    Args:
        kernel: The kernel.
        locations: Add the author's location to every operation.
    """
    return Printer(locations).kernel(kernel, "") + "\n"


def print_module(module: Module, *, name: str = "kernels", locations: bool = False) -> str:
    """Text of a module: its kernels inside ``gpu.module @name``."""
    head = f"gpu.module {_symbol(name)}"
    if module.attrs:
        head += f" attributes {dict_text(module.attrs)}"
    kernels = [Printer(locations).kernel(k, "  ") + "\n" for k in module.kernels]
    return head + " {\n" + "\n".join(kernels) + "}\n"


def print_op(op: Op) -> str:
    """Text of one operation alone, for messages and dumps; operands that have no name are numbered."""
    p = Printer(False)
    p.op(op, "")
    return "\n".join(p.lines)


def location_text(loc: Location) -> str:
    """``loc("file.py":12:0)``; a helper's location is ``callsite(inner at outer)``."""
    if not loc.frames:
        return "loc(unknown)"
    *inner, last = map(_frame_text, loc.frames)
    return "loc(" + "".join(f"callsite({f} at " for f in inner) + last + ")" * (len(inner) + 1)


def _frame_text(f: Frame) -> str:
    place = f"{quote(f.file)}:{f.line}:{f.col}"
    return f"{quote(f'{f.func}:{f.func_line}')}({place})" if f.func else place


def _symbol(name: str) -> str:
    return "@" + (name if NAME.match(name) else quote(name))


class Printer:
    """Writes one kernel; names are unique in it."""

    def __init__(self, locations: bool) -> None:
        self.locations = locations
        self.lines: list[str] = []
        self.names: dict[int, str] = {}
        self.taken: set[str] = set()
        self.next_number = 0
        self.depth = 0
        self.attrs_of_kernel: dict[str, Any] | None = None
        self.facts: dict[int, Facts] = {}
        self.extra: dict[str, object] = {}

    # --- names -----------------------------------------------------------------------------------

    def fresh(self, hint: str) -> str:
        if not hint:
            self.next_number += 1
            return f"%{self.next_number - 1}"
        base = _BAD.sub("_", hint)
        if base[0].isdigit() or base[0] == ".":
            base = "_" + base
        name, n = base, 0
        while name in self.taken:
            n += 1
            name = f"{base}_{n}"
        self.taken.add(name)
        return "%" + name

    def use(self, v: Value) -> str:
        name = self.names.get(id(v))
        if name is None:
            name = self.names[id(v)] = self.fresh(v.name)
        return name

    def uses(self, values: Sequence[Value]) -> str:
        return ", ".join(map(self.use, values))

    def define(self, op: Op) -> str:
        """The left side of an operation; several results share a name unless the author named more than one."""
        results = op.results
        if not results:
            return ""
        if len(results) == 1 or any(r.name for r in results[1:]) or any(id(r) in self.names for r in results):
            return self.uses(results) + " = "
        group = self.fresh(results[0].name)
        for i, r in enumerate(results):
            self.names[id(r)] = f"{group}#{i}"
        return f"{group}:{len(results)} = "

    # --- kernels and blocks ----------------------------------------------------------------------

    def kernel(self, k: Kernel, pad: str) -> str:
        args = []
        self.attrs_of_kernel = k.attrs
        for i, v in enumerate(k.args):
            attrs = dict(k.arg_attrs[i]) if i < len(k.arg_attrs) else {}
            name = self.use(v)
            if attrs.get("name") == name[1:]:
                del attrs["name"]
            if v.divisibility != attrs.get("divisibility", 1):
                attrs["divisibility"] = v.divisibility
            if v.range is not None:
                attrs["range"] = v.range
            self.facts[id(v)] = (v.divisibility, v.range)
            entries = ", ".join(entry_text("fly." + key, a) for key, a in attrs.items() if a is not None)
            args.append(f"{name}: {v.type}" + (f" {{{entries}}}" if entries else ""))
        attributes = f" attributes {dict_text(k.attrs)}" if k.attrs else ""
        self.lines.append(f"{pad}gpu.func {_symbol(k.name)}({', '.join(args)}) kernel{attributes} {{")
        self.ops(k.body.ops, pad + "  ")
        self.lines.append(f"{pad}}}{self.location(k.loc)}")
        return "\n".join(self.lines)

    def location(self, loc: Location) -> str:
        return " " + location_text(loc) if self.locations else ""

    def ops(self, ops: Sequence[Op], pad: str) -> None:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise VerifyError(
                f"regions nest deeper than {MAX_DEPTH}", ops[0].loc if ops else None, "flatten the control flow"
            )
        for op in ops:
            self.op(op, pad)
        self.depth -= 1

    def body(self, block: Block, pad: str, elide: bool = False) -> None:
        """The operations of a region; a final ``scf.yield`` of nothing may be left out."""
        last = block.ops[-1] if block.ops else None
        elide = elide and not self.locations and last is not None and type(last) is Yield
        if elide and last is not None and not (last.operands or last.attrs or last.results or last.regions):
            self.ops(block.ops[:-1], pad + "  ")
        else:
            self.ops(block.ops, pad + "  ")

    def header(self, block: Block, pad: str) -> None:
        if block.args:
            self.lines.append(f"{pad}^bb0({', '.join(f'{self.use(a)}: {a.type}' for a in block.args)}):")

    # --- facts -----------------------------------------------------------------------------------

    def known(self, op: Op) -> list[Facts]:
        """What a reader of the text knows of the operands."""
        return [self.facts.get(id(v), UNKNOWN) for v in op.operands]

    def tell(self, op: Op) -> None:
        """Notes what the operation tells of its result, and which facts the text must add."""
        self.extra = {}
        if self.attrs_of_kernel is None or len(op.results) != 1 or not isinstance(op.results[0].type, IntType):
            return
        r = op.results[0]
        have = derive(op, self.known(op), self.attrs_of_kernel) if not op.regions else UNKNOWN
        if not op.regions:
            self.extra = missing(have, (r.divisibility, r.range))
        self.facts[id(r)] = merged(have, self.extra)

    # --- operations ------------------------------------------------------------------------------

    def op(self, op: Op, pad: str) -> None:
        left = pad + self.define(op)
        self.tell(op)
        special = SPECIAL.get(type(op))
        if special is not None:
            if special(self, op, left, pad):
                self.lines[-1] += self.location(op.loc)
                return
        elif not op.regions:
            text = self.templated(op, form_of(type(op)))
            if text is not None:
                self.lines.append(left + op.name + text + self.location(op.loc))
                return
        self.generic(op, left, pad)
        self.lines[-1] += self.location(op.loc)

    def generic(self, op: Op, left: str, pad: str) -> None:
        """``"name"(%a) ({ ... }) {attrs} : (T) -> R``."""
        self.lines.append(f"{left}{quote(op.name)}({self.uses(op.operands)})")
        for i, region in enumerate(op.regions):
            self.lines[-1] += ", {" if i else " ({"
            self.header(region, pad)
            self.ops(region.ops, pad + "  ")
            self.lines.append(pad + "}" + (")" if i == len(op.regions) - 1 else ""))
        self.lines[-1] += self.attrs(op.attrs) + " : " + function_type(op)

    def attrs(self, attrs: dict[str, Any]) -> str:
        attrs, self.extra = {**attrs, **self.extra}, {}
        return " " + dict_text(attrs) if any(v is not None for v in attrs.values()) else ""

    def templated(self, op: Op, form: Form) -> str | None:
        """The operation in its template, ``None`` where the template cannot say it."""
        if form.arity >= 0 and len(op.operands) != form.arity:
            return None
        if not form.has_result and not self._infers(op, form):
            return None
        rest = {k: v for k, v in op.attrs.items() if k not in form.shown and v is not None}
        if rest and not form.has_attrs:
            return None
        out = []
        for piece in form.pieces:
            text = piece if isinstance(piece, str) else SLOTS[piece[0]](self, op, piece[1], rest)
            if text is None:
                return None
            out.append(text)
        return "".join(out)

    def _infers(self, op: Op, form: Form) -> bool:
        """Whether the parser will find the results that the template does not spell."""
        if form.infer is None or not op.results:
            return form.infer is None and not op.results
        return len(op.results) == 1 and form.infer(op.operands, op.attrs) == op.results[0].type
