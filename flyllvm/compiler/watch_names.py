"""What code reads, from its bytecode: names of attributes and globals, strings that may be names, imports."""

from __future__ import annotations

import sys
from opcode import hasfree, hasname, opmap
from types import CodeType

#: Bits of an instruction's argument before the number of its name.
_SHIFTS = {"LOAD_GLOBAL": 1, "LOAD_ATTR": 1 if sys.version_info >= (3, 12) else 0, "LOAD_SUPER_ATTR": 2}
_SHIFT = {opmap[name]: bits for name, bits in _SHIFTS.items() if name in opmap}
_WRITES = frozenset(opmap[n] for n in ("STORE_ATTR", "STORE_NAME", "STORE_GLOBAL", "DELETE_ATTR") if n in opmap)
_GLOBALS = frozenset(opmap[n] for n in ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS") if n in opmap)
_ATTRIBUTES = frozenset(opmap[n] for n in ("LOAD_ATTR", "LOAD_METHOD") if n in opmap)
_NAMED = frozenset(hasname)
_FREE = frozenset(hasfree) & frozenset(opmap[n] for n in ("LOAD_DEREF", "LOAD_CLASSDEREF") if n in opmap)
_LOADS = frozenset(opmap[n] for n in ("LOAD_FAST", "LOAD_DEREF", "LOAD_GLOBAL", "LOAD_NAME") if n in opmap)
_CALLS = frozenset(opmap[n] for n in ("PRECALL", "CALL") if n in opmap)
_NOTHING = frozenset(opmap[n] for n in ("PUSH_NULL", "NOP") if n in opmap)
_CONST = opmap["LOAD_CONST"]
#: Names of Python that read attributes whose names are not in the code.
_COMPUTED = frozenset(
    ("vars", "asdict", "astuple", "attrgetter", "methodcaller", "__dict__", "__getattribute__", "__match_args__", "dir",
     "fields", "replace", "copy", "deepcopy", "format", "format_map")
)  # fmt: skip
_COMPUTED_ATTRIBUTES = _COMPUTED - {"replace", "copy", "fields", "dir"}
_EXTENDED, _IMPORT, _CACHE = opmap["EXTENDED_ARG"], opmap["IMPORT_NAME"], opmap.get("CACHE", 0)


class Reads:
    """What a code object reads, with the functions inside it.

    Attributes:
        names: Attributes that are read (what is only assigned is not), and strings that may be attributes
            (``getattr(x, "tile")``, ``case Box(width=w)``).
        globals: Globals that are read.  An attribute's name is none of them, even where a global has it.
        strings: Strings that are Python names.
        imports: Modules that an import statement inside the code names.
        chains: Name of a global or closure -> the attributes read from it one after the other (``np.linalg.norm`` is
            ``("linalg", "norm")`` of ``np``); ``()`` where it is used in another way.
        computed: Whether attributes are read by names that are not in the code.
    """

    __slots__ = ("chains", "computed", "globals", "imports", "names", "strings")

    def __init__(self, code: CodeType) -> None:
        names: set[str] = set()
        # Dictionaries keep the order of the code.
        scope: dict[str, None] = {}
        imports: dict[str, None] = {}
        chains: dict[str, set[tuple[str, ...]]] = {}
        root: str | None = None
        chain: list[str] = []
        instructions = _instructions(code)
        self.computed = False
        for i, (op, arg) in enumerate(instructions):
            if root is not None and op not in _ATTRIBUTES:
                chains.setdefault(root, set()).add(tuple(chain))
                root = None
            if op in _FREE:
                root, chain = _variable(code, arg), []
            if op not in _NAMED or op in _WRITES:
                continue
            name = code.co_names[arg >> _SHIFT.get(op, 0)]
            if op in _GLOBALS:
                scope[name] = None
                root, chain = name, []
                if name in ("getattr", "hasattr") and not _is_constant(code, instructions, i + 1):
                    self.computed = True
            elif op == _IMPORT:
                imports[name] = None
            else:
                names.add(name)
                chain.append(name)
        self.computed |= not _COMPUTED.isdisjoint(scope) or not _COMPUTED_ATTRIBUTES.isdisjoint(names)
        strings = {s for s in _strings(code.co_consts) if s.isidentifier()}
        for const in code.co_consts:
            if isinstance(const, CodeType):
                inner = reads_of(const)
                names |= inner.names
                self.computed |= inner.computed
                strings |= inner.strings
                scope.update(dict.fromkeys(inner.globals))
                imports.update(dict.fromkeys(inner.imports))
                for name, found in inner.chains.items():
                    chains.setdefault(name, set()).update(found)
        self.names: frozenset[str] = frozenset(names | strings)
        self.globals: tuple[str, ...] = tuple(scope)
        self.strings: frozenset[str] = frozenset(strings)
        self.imports: tuple[str, ...] = tuple(imports)
        self.chains: dict[str, tuple[tuple[str, ...], ...]] = {n: tuple(sorted(c)) for n, c in sorted(chains.items())}


_SEEN: dict[CodeType, Reads] = {}


def reads_of(code: CodeType) -> Reads:
    """What code reads; found once."""
    found = _SEEN.get(code)
    if found is None:
        found = _SEEN[code] = Reads(code)
    return found


def _instructions(code: CodeType) -> list[tuple[int, int]]:
    """(operation, argument) of every instruction, and one that ends the last chain."""
    out: list[tuple[int, int]] = []
    raw, high = code.co_code, 0
    for i in range(0, len(raw), 2):
        op, arg = raw[i], raw[i + 1] | high
        high = arg << 8 if op == _EXTENDED else 0
        if op not in (_EXTENDED, _CACHE):
            out.append((op, arg))
    out.append((_EXTENDED, 0))
    return out


def _is_constant(code: CodeType, instructions: list[tuple[int, int]], i: int) -> bool:
    """Whether a call of ``getattr`` or ``hasattr`` has a name written in the code, and plain things around it."""
    first = _after_plain(instructions, i)
    if first is None:
        return False
    op, arg = instructions[first]
    if op != _CONST or not isinstance(code.co_consts[arg], str):
        return False
    if instructions[first + 1][0] in _CALLS:
        return True
    default = _after_plain(instructions, first + 1)
    return default is not None and instructions[default][0] in _CALLS


def _after_plain(instructions: list[tuple[int, int]], i: int) -> int | None:
    """What follows a variable, attributes of one or a constant; ``None`` where there is something else."""
    while instructions[i][0] in _NOTHING:
        i += 1
    if instructions[i][0] not in _LOADS and instructions[i][0] != _CONST:
        return None
    i += 1
    while instructions[i][0] in _ATTRIBUTES:
        i += 1
    return i


def _variable(code: CodeType, arg: int) -> str:
    """Name of a variable that is shared with the functions around or inside."""
    own = code.co_nlocals
    # Parameters that inner functions use keep their place; the other ones come behind the local variables.
    places = (*code.co_varnames, *(c for c in code.co_cellvars if c not in code.co_varnames), *code.co_freevars)
    return places[arg] if own == len(code.co_varnames) and arg < len(places) else ""


def _strings(consts: tuple[object, ...]) -> set[str]:
    out: set[str] = set()
    for const in consts:
        if isinstance(const, str):
            out.add(const)
        elif isinstance(const, (tuple, frozenset)):
            out |= _strings(tuple(const))
    return out
