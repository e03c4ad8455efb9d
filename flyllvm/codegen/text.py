"""LLVM IR as text: numbered values, folding of what is known, one method per instruction.

Text is twelve times cheaper to build than a tree of instruction objects, and LLVM parses it faster than
it verifies it.
"""

from __future__ import annotations

from ..errors import CodegenError
from ..ir import lltype as ll
from ..ir.location import UNKNOWN, Location
from ..ir.protocols import LLValue
from .aggregate import StructValue
from .constants import ICMP, const_text, fold_int, int_text, wrap
from .scope import Scope

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..ir.lltype import LLType
    from ..target import Target
    from .module import ModuleBuilder

#: Instructions that cannot be moved or dropped: they trap on a zero divisor.
_TRAPS = frozenset(("sdiv", "udiv", "srem", "urem"))
_MASKS: dict[tuple[int, ...], str] = {}


class TextBuilder:
    """Builds the text of one function.

    Attributes:
        target: What is compiled for.
        module: Declarations and globals of the module.
        loc: The author's location of what is being emitted.
        dbg: Text that ends each instruction: the debug location, or nothing.
        lines: The segment that is written to.
        scope: The scope that is written to.
        block: Label of the current block.
    """

    __slots__ = (
        "block", "count", "dbg", "entry", "ints", "labels", "lines", "loc", "module", "scope", "segments", "target",
    )  # fmt: skip

    def __init__(self, module: ModuleBuilder, target: Target) -> None:
        self.module = module
        self.target = target
        self.loc: Location = UNKNOWN
        self.dbg = ""
        self.entry: list[str] = []
        self.lines: list[str] = []
        self.segments = [self.entry, self.lines]
        self.scope = Scope()
        self.block = "entry"
        #: Integer constants made so far.
        self.ints: dict[tuple[LLType, int], LLValue] = {}
        self.count = 0
        self.labels = 0

    # --- lines ------------------------------------------------------------------------------------

    def value(self, type: LLType, rhs: str, uniform: bool = False) -> LLValue:
        """Appends an instruction with a result."""
        name = f"%v{self.count}"
        self.count += 1
        self.lines.append(f"  {name} = {rhs}{self.dbg}")
        return LLValue(type, name, None, uniform, self.scope.depth)

    def line(self, text: str) -> None:
        """Appends an instruction without a result."""
        self.lines.append(f"  {text}{self.dbg}")

    def pure(self, type: LLType, rhs: str, level: int, uniform: bool = False) -> LLValue:
        """An instruction without effects: reused where it was made before, and placed outside loops.

        Args:
            type: Result type.
            rhs: The instruction.
            level: Greatest nesting depth of its operands.
            uniform: Whether all lanes get the same result.
        """
        scope = self.scope
        if level < scope.depth:
            found = scope.find(rhs, level)
            if found is not None:
                return found
            loop = scope.place(level)
            if loop is not None and loop.front is not None and loop.parent is not None:
                name = f"%v{self.count}"
                self.count += 1
                loop.front.append(f"  {name} = {rhs}{self.dbg}")
                made = LLValue(type, name, None, uniform, loop.parent.depth)
                loop.parent.memo[rhs] = made
                return made
        found = scope.memo.get(rhs)
        if found is None:
            found = scope.memo[rhs] = self.value(type, rhs, uniform)
        return found

    def fail(self, what: str, fix: str | None = None) -> CodegenError:
        """An error at the current location, to be raised."""
        return CodegenError(what, self.loc if self.loc.frames else None, fix)

    # --- constants --------------------------------------------------------------------------------

    def const(self, type: LLType, value: int | float) -> LLValue:
        """A number of a scalar type, or a splat of a vector type."""
        if type.kind == "int" and isinstance(value, int):
            made = self.ints.get((type, value))
            if made is None:
                made = LLValue(type, int_text(value, type.bits), wrap(value, type.bits), True, 0)
                self.ints[(type, value)] = made
            return made
        return LLValue(type, const_text(type, value), value if type.kind in ("int", "float") else None, True, 0)

    def zero(self, type: LLType) -> LLValue:
        """The zero of any type."""
        if type.kind in ("int", "float"):
            return self.const(type, 0 if type.kind == "int" else 0.0)
        if type.kind == "struct":
            return StructValue(self, type, [self.zero(f) for f in type.fields])
        return LLValue(type, "null" if type.kind == "ptr" else "zeroinitializer", None, True, 0)

    def poison(self, type: LLType) -> LLValue:
        """A value that must not be used."""
        return LLValue(type, "poison", None, True, 0)

    # --- numbers ----------------------------------------------------------------------------------

    def binary(self, op: str, a: LLValue, b: LLValue, flags: str = "") -> LLValue:
        """An elementwise instruction of two operands; integers fold."""
        type = a.type
        if type is not b.type:
            raise self.fail(f"{op} of {type.text} and {b.type.text}", "convert the operands to one type")
        if type.elem.kind != "int":
            opcode = f"{op} {flags}" if flags else op
            return self.value(type, f"{opcode} {type.text} {a.text}, {b.text}", a.uniform and b.uniform)
        if type.kind == "int" and (a.const is not None or b.const is not None):
            folded = self._fold(op, a, b)
            if folded is not None:
                return folded
        rhs = f"{op} {flags} {type.text} {a.text}, {b.text}" if flags else f"{op} {type.text} {a.text}, {b.text}"
        uniform = a.uniform and b.uniform
        if op in _TRAPS and not b.const:
            return self.value(type, rhs, uniform)
        return self.pure(type, rhs, a.level if a.level > b.level else b.level, uniform)

    def _fold(self, op: str, a: LLValue, b: LLValue) -> LLValue | None:
        """The result of an integer instruction with a constant operand, if it needs no instruction."""
        x, y, type = a.const, b.const, a.type
        if isinstance(x, int) and isinstance(y, int):
            folded = fold_int(op, x, y, type.bits)
            return None if folded is None else self.const(type, folded)
        if y == 0:
            if op in ("add", "sub", "or", "xor", "shl", "lshr", "ashr"):
                return a
            if op in ("and", "mul"):
                return b
        elif y == 1 and op in ("mul", "sdiv", "udiv"):
            return a
        elif y == 1 and op in ("srem", "urem"):
            return self.const(type, 0)
        elif y == -1 and op == "and":
            return a
        if x == 0:
            if op in ("add", "or", "xor"):
                return b
            if op in ("and", "mul", "shl", "lshr", "ashr"):
                return a
        elif (x == 1 and op == "mul") or (x == -1 and op == "and"):
            return b
        return None

    def cast(self, op: str, value: LLValue, type: LLType) -> LLValue:
        """A conversion instruction (``zext``, ``fptrunc``, ``inttoptr``, ...); integers fold."""
        source = value.type
        if source is type and op in ("bitcast", "zext", "sext", "trunc", "addrspacecast"):
            return value
        const = value.const
        if isinstance(const, int) and type.kind == "int":
            if op in ("sext", "trunc"):
                # An i1 constant is 0 or 1, and sign extension makes -1 of it.
                return self.const(type, -const if op == "sext" and source.bits == 1 else const)
            if op == "zext":
                return self.const(type, const & ((1 << source.bits) - 1))
        return self.pure(type, f"{op} {source.text} {value.text} to {type.text}", value.level, value.uniform)

    def bitcast(self, value: LLValue, type: LLType) -> LLValue:
        """The same bits as another type of equal size."""
        source = value.type
        if source is type:
            return value
        if source.bits != type.bits or "ptr" in (source.elem.kind, type.elem.kind):
            raise self.fail(
                f"bitcast of {source.text} ({source.bits} bits) to {type.text} ({type.bits} bits)",
                "bitcast between numbers or vectors of equal size in bits",
            )
        if value.text == "zeroinitializer" or (value.const == 0 and isinstance(value.const, int)):
            return self.zero(type)
        if value.text == "poison":
            return self.poison(type)
        return self.pure(type, f"bitcast {source.text} {value.text} to {type.text}", value.level, value.uniform)

    def icmp(self, predicate: str, a: LLValue, b: LLValue) -> LLValue:
        """An integer or pointer comparison."""
        type = ll.vec(a.type.count, ll.I1) if a.type.kind == "vector" else ll.I1
        if isinstance(a.const, int) and isinstance(b.const, int) and a.type.kind == "int":
            return self.const(type, int(ICMP[predicate](a.const, b.const, (1 << a.type.bits) - 1)))
        level = a.level if a.level > b.level else b.level
        return self.pure(type, f"icmp {predicate} {a.type.text} {a.text}, {b.text}", level, a.uniform and b.uniform)

    def fcmp(self, predicate: str, a: LLValue, b: LLValue, flags: str = "") -> LLValue:
        """A float comparison."""
        type = ll.vec(a.type.count, ll.I1) if a.type.kind == "vector" else ll.I1
        opcode = f"fcmp {flags}" if flags else "fcmp"
        return self.value(type, f"{opcode} {predicate} {a.type.text} {a.text}, {b.text}", a.uniform and b.uniform)

    def select(self, cond: LLValue, a: LLValue, b: LLValue) -> LLValue:
        """One of two values."""
        if cond.const is not None and cond.type is ll.I1:
            return a if cond.const else b
        if a.text == b.text and a.type is b.type:
            return a
        rhs = f"select {cond.type.text} {cond.text}, {a.type.text} {a.text}, {b.type.text} {b.text}"
        return self.pure(a.type, rhs, max(cond.level, a.level, b.level), cond.uniform and a.uniform and b.uniform)

    # --- aggregates and vectors -------------------------------------------------------------------

    def extract_value(self, value: LLValue, index: int) -> LLValue:
        """One field of a struct."""
        if isinstance(value, StructValue):
            return value.field(index)
        type = value.type.fields[index]
        return self.pure(type, f"extractvalue {value.type.text} {value.text}, {index}", value.level, value.uniform)

    def insert_value(self, value: LLValue, element: LLValue, index: int) -> LLValue:
        """A struct with one field replaced; no instruction until the struct itself is needed."""
        if not isinstance(value, StructValue):
            fields = [self.extract_value(value, i) if i != index else None for i in range(len(value.type.fields))]
            value = StructValue(self, value.type, fields)
        return value.with_field(index, element)

    def build_struct(self, value: StructValue) -> str:
        """Operand text of a struct made of its fields."""
        fields = [f if f is not None else self.poison(t) for f, t in zip(value.fields, value.type.fields)]
        constant = [not f.text.startswith("%") for f in fields]
        head = ", ".join(f"{f.type.text} {f.text if c else 'poison'}" for f, c in zip(fields, constant))
        text = f"{{ {head} }}" if fields else "zeroinitializer"
        level = 0
        for i, (field, known) in enumerate(zip(fields, constant)):
            if not known:
                level = max(level, field.level)
                rhs = f"insertvalue {value.type.text} {text}, {field.type.text} {field.text}, {i}"
                text = self.pure(value.type, rhs, level, value.uniform).text
        return text

    def extract_element(self, value: LLValue, index: int | LLValue) -> LLValue:
        """One element of a vector; a scalar is its own element 0."""
        if value.type.kind != "vector":
            return value
        level = value.level
        if isinstance(index, LLValue):
            level = max(level, index.level)
            place = f"{index.type.text} {index.text}"
        else:
            place = f"i32 {index}"
        if value.text == "zeroinitializer":
            return self.zero(value.type.elem)
        rhs = f"extractelement {value.type.text} {value.text}, {place}"
        return self.pure(value.type.elem, rhs, level, value.uniform)

    def insert_element(self, value: LLValue, element: LLValue, index: int | LLValue) -> LLValue:
        """A vector with one element replaced."""
        if value.type.kind != "vector":
            return element
        place = f"{index.type.text} {index.text}" if isinstance(index, LLValue) else f"i32 {index}"
        rhs = f"insertelement {value.type.text} {value.text}, {element.type.text} {element.text}, {place}"
        return self.value(value.type, rhs, value.uniform and element.uniform)

    def shuffle(self, a: LLValue, b: LLValue | None, mask: Sequence[int]) -> LLValue:
        """Elements of the concatenation of two vectors of one type; one element gives a scalar."""
        if len(mask) == 1:
            source = a if mask[0] < a.type.count or b is None else b
            return self.extract_element(source, mask[0] % a.type.count)
        if a.type.kind != "vector":
            raise self.fail(f"shuffle of a {a.type.text}", "shuffle vectors")
        key = tuple(mask)
        if len(key) == a.type.count and all(i == k for i, k in enumerate(key)):
            return a
        text = _MASKS.get(key)
        if text is None:
            text = _MASKS[key] = f"<{len(key)} x i32> <{', '.join(f'i32 {i}' for i in key)}>"
        other = "poison" if b is None else b.text
        rhs = f"shufflevector {a.type.text} {a.text}, {a.type.text} {other}, {text}"
        level = a.level if b is None else max(a.level, b.level)
        return self.pure(ll.vec(len(key), a.type.elem), rhs, level, a.uniform and (b is None or b.uniform))

    def splat(self, value: LLValue, count: int) -> LLValue:
        """A vector whose elements are all ``value``."""
        type = ll.vec(count, value.type)
        if value.const is not None:
            return self.const(type, value.const)
        first = self.pure(
            type, f"insertelement {type.text} poison, {value.type.text} {value.text}, i32 0", value.level, value.uniform
        )
        return first if count == 1 else self.shuffle(first, None, (0,) * count)
