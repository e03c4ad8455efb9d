"""What code reads, from its bytecode: names of attributes and globals, strings that may be names, imports."""

from __future__ import annotations

import sys
from opcode import hasname, opmap
from types import CodeType

#: Bits of an instruction's argument before the number of its name.
_SHIFTS = {"LOAD_GLOBAL": 1, "LOAD_ATTR": 1 if sys.version_info >= (3, 12) else 0, "LOAD_SUPER_ATTR": 2}
_SHIFT = {opmap[name]: bits for name, bits in _SHIFTS.items() if name in opmap}
_WRITES = frozenset(opmap[n] for n in ("STORE_ATTR", "STORE_NAME", "STORE_GLOBAL", "DELETE_ATTR") if n in opmap)
_GLOBALS = frozenset(opmap[n] for n in ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS") if n in opmap)
_NAMED = frozenset(hasname)
_EXTENDED, _IMPORT = opmap["EXTENDED_ARG"], opmap["IMPORT_NAME"]


class Reads:
    """What a code object reads, with the functions inside it.

    Attributes:
        names: Attributes and globals that are read (what is only assigned is not), and strings that may be attributes
            (``getattr(x, "tile")``, ``case Box(width=w)``).
        globals: Globals that are read.  An attribute's name is none of them, even where a global has it.
        strings: Strings that are Python names.
        imports: Modules that an import statement inside the code names.
    """

    __slots__ = ("globals", "imports", "names", "strings")

    def __init__(self, code: CodeType) -> None:
        names: set[str] = set()
        # Dictionaries keep the order of the code.
        scope: dict[str, None] = {}
        imports: dict[str, None] = {}
        strings = {s for s in _strings(code.co_consts) if s.isidentifier()}
        raw, high = code.co_code, 0
        for i in range(0, len(raw), 2):
            op, arg = raw[i], raw[i + 1] | high
            high = arg << 8 if op == _EXTENDED else 0
            if op not in _NAMED or op in _WRITES:
                continue
            name = code.co_names[arg >> _SHIFT.get(op, 0)]
            names.add(name)
            if op in _GLOBALS:
                scope[name] = None
            elif op == _IMPORT:
                imports[name] = None
        for const in code.co_consts:
            if isinstance(const, CodeType):
                inner = reads_of(const)
                names |= inner.names
                strings |= inner.strings
                scope.update(dict.fromkeys(inner.globals))
                imports.update(dict.fromkeys(inner.imports))
        self.names: frozenset[str] = frozenset(names | strings)
        self.globals: tuple[str, ...] = tuple(scope)
        self.strings: frozenset[str] = frozenset(strings)
        self.imports: tuple[str, ...] = tuple(imports)


_SEEN: dict[CodeType, Reads] = {}


def reads_of(code: CodeType) -> Reads:
    """What code reads; found once."""
    found = _SEEN.get(code)
    if found is None:
        found = _SEEN[code] = Reads(code)
    return found


def _strings(consts: tuple[object, ...]) -> set[str]:
    out: set[str] = set()
    for const in consts:
        if isinstance(const, str):
            out.add(const)
        elif isinstance(const, (tuple, frozenset)):
            out |= _strings(tuple(const))
    return out
