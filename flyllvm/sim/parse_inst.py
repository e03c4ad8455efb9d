"""Parser of instructions: one method per form."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import inline_asm, types as ty
from .ir import Const, Inst, Operand
from .parse_value import ValueParser
from .types import Type

BINARY = frozenset(
    "add sub mul udiv sdiv urem srem shl lshr ashr and or xor fadd fsub fmul fdiv frem".split()
)  # fmt: skip
CASTS = frozenset(
    "trunc zext sext fptrunc fpext fptoui fptosi uitofp sitofp ptrtoint inttoptr bitcast addrspacecast "
    "ptrtoaddr".split()
)  # fmt: skip
ORDERINGS = frozenset("unordered monotonic acquire release acq_rel seq_cst".split())
_FLAGS = frozenset(
    "nuw nsw exact disjoint nneg samesign inbounds nusw volatile atomic weak inalloca "
    "fast nnan ninf nsz arcp contract afn reassoc tail musttail notail swifterror".split()
)  # fmt: skip
FOREIGN = frozenset(
    "invoke callbr landingpad resume catchswitch catchret cleanupret catchpad cleanuppad indirectbr va_arg".split()
)  # fmt: skip


class InstParser(ValueParser):
    """Reads one instruction at a time."""

    __slots__ = ()

    def parse_inst(self) -> Inst:
        """Reads an instruction with its result name and metadata."""
        line, name = self.line(), None
        if self.kind() == "local":
            name = self.next()
            self.expect("=")
        opcode_at = self.index
        op = self.expect_kind("word", "an instruction")
        flags: list[str] = []
        if op in ("tail", "musttail", "notail"):
            flags.append(op)
            self.expect("call")
            op = "call"
        if op in FOREIGN:
            return self._foreign(op, name, line)
        inst = Inst(op, name, ty.VOID, [], line)
        while self.kind() == "word" and self.peek() in _FLAGS:
            flags.append(self.next())
        inst.flags = tuple(flags)
        form = _FORMS.get(op)
        if form is None:
            self.index = opcode_at
            self.error(f"unknown instruction {op!r}")
        form(self, inst)
        self._attachments(inst)
        return inst

    def _foreign(self, op: str, name: str | None, line: int) -> Inst:
        """Skips an instruction that AMDGPU code never holds; the support check refuses it by name."""
        while self.kind() != "eof" and self.line() == line:
            self.index += 1
        return Inst(op, name, ty.VOID, [], line)

    def _attachments(self, inst: Inst) -> None:
        while self.accept(","):
            key = self.expect_kind("meta", "metadata or an attribute")
            if key == "!dbg" and self.kind() == "meta" and self.peek() != "!DILocation":
                inst.dbg = self.next()
                continue
            value = self.parse_value(ty.METADATA)
            inst.extra.setdefault("metadata", {})[key] = getattr(value, "value", None)

    def _typed_pair(self, inst: Inst) -> Type:
        t = self.parse_type()
        inst.operands = [self.parse_value(t)]
        self.expect(",")
        inst.operands.append(self.parse_value(t))
        return t

    def _binary(self, inst: Inst) -> None:
        inst.type = self._typed_pair(inst)
        scalar = ty.scalar_of(inst.type)
        want: type[Any] = ty.FloatType if inst.op.startswith("f") else ty.IntType
        if not isinstance(scalar, want):
            self.error(f"{inst.op} of type {inst.type}")

    def _compare(self, inst: Inst) -> None:
        inst.extra["pred"] = self.expect_kind("word", "a predicate")
        t = self._typed_pair(inst)
        inst.type = ty.same_shape(t, ty.I1)

    def _unary(self, inst: Inst) -> None:
        inst.operands = [self.parse_typed()]
        inst.type = inst.operands[0].type

    def _cast(self, inst: Inst) -> None:
        inst.operands = [self.parse_typed()]
        self.expect("to")
        inst.type = self.parse_type()

    def _operands(self, inst: Inst, count: int) -> list[Operand]:
        inst.operands = [self.parse_typed()]
        for _ in range(count - 1):
            self.expect(",")
            inst.operands.append(self.parse_typed())
        return inst.operands

    def _select(self, inst: Inst) -> None:
        ops = self._operands(inst, 3)
        inst.type = ops[1].type
        if ops[2].type is not ops[1].type:
            self.error(f"select arms differ in type: {ops[1].type} and {ops[2].type}")

    def _extractelement(self, inst: Inst) -> None:
        ops = self._operands(inst, 2)
        inst.type = self._vector(ops[0].type).elem

    def _insertelement(self, inst: Inst) -> None:
        ops = self._operands(inst, 3)
        inst.type = self._vector(ops[0].type)
        if ops[1].type is not inst.type.elem:
            self.error(f"insertelement of {ops[1].type} into {inst.type}")

    def _vector(self, t: Type) -> ty.VecType:
        if not isinstance(t, ty.VecType):
            self.error(f"expected a vector type, found {t}")
        return t

    def _shufflevector(self, inst: Inst) -> None:
        ops = self._operands(inst, 3)
        source, mask = self._vector(ops[0].type), self._vector(ops[2].type)
        inst.type = ty.vec_type(mask.count, source.elem)

    def _indices(self) -> tuple[int, ...]:
        indices = []
        while self.at(",") and self.tokens[self.index + 1][0] == "num":
            self.next()
            indices.append(self.number())
        return tuple(indices)

    def member(self, t: Type, indices: tuple[int, ...]) -> Type:
        """Type of the member of an aggregate that ``indices`` name."""
        for i in indices:
            if isinstance(t, ty.ArrayType) and 0 <= i < t.count:
                t = t.elem
            elif isinstance(t, ty.StructType) and t.elems is not None and 0 <= i < len(t.elems):
                t = t.elems[i]
            else:
                self.error(f"type {t} has no member {i}")
        return t

    def _extractvalue(self, inst: Inst) -> None:
        ops = self._operands(inst, 1)
        inst.extra["indices"] = self._indices()
        inst.type = self.member(ops[0].type, inst.extra["indices"])

    def _insertvalue(self, inst: Inst) -> None:
        ops = self._operands(inst, 2)
        inst.extra["indices"] = self._indices()
        inst.type = ops[0].type
        self.member(inst.type, inst.extra["indices"])

    def _gep(self, inst: Inst) -> None:
        if self.accept("inrange"):
            self.skip_balanced()
        inst.extra["base_type"] = self.parse_type()
        self.expect(",")
        inst.operands = [self.parse_typed()]
        while self.at(",") and self.tokens[self.index + 1][0] != "meta":
            self.next()
            inst.operands.append(self.parse_typed())
        base = inst.operands[0].type
        counts = [o.type.count for o in inst.operands if isinstance(o.type, ty.VecType)]
        inst.type = ty.vec_type(counts[0], ty.scalar_of(base)) if counts else base

    def _memory_tail(self, inst: Inst, orderings: int) -> None:
        """Reads ``[syncscope("...")] [ordering]*, align N``."""
        if self.accept("syncscope"):
            self.expect("(")
            inst.extra["scope"] = self.expect_kind("str", "a scope")[1:-1]
            self.expect(")")
        orders = []
        while self.kind() == "word" and self.peek() in ORDERINGS:
            orders.append(self.next())
        if len(orders) < orderings:
            self.error(f"{inst.op} needs an ordering", f"one of: {', '.join(sorted(ORDERINGS))}")
        if orders:
            inst.extra["order"] = orders[0]
        while self.at(",") and self.tokens[self.index + 1][1] == "align":
            self.index += 2
            inst.extra["align"] = self.number()

    def _load(self, inst: Inst) -> None:
        inst.type = self.parse_type()
        self.expect(",")
        inst.operands = [self._pointer()]
        self._memory_tail(inst, int("atomic" in inst.flags))

    def _pointer(self) -> Operand:
        pointer = self.parse_typed()
        if not isinstance(pointer.type, ty.PtrType):
            self.error(f"expected a pointer, found a value of type {pointer.type}")
        return pointer

    def _store(self, inst: Inst) -> None:
        inst.operands = [self.parse_typed()]
        self.expect(",")
        inst.operands.append(self._pointer())
        self._memory_tail(inst, int("atomic" in inst.flags))

    def _alloca(self, inst: Inst) -> None:
        inst.extra["base_type"] = self.parse_type()
        space = 0
        while self.at(",") and self.tokens[self.index + 1][0] != "meta":
            self.next()
            if self.accept("align"):
                inst.extra["align"] = self.number()
            elif self.accept("addrspace"):
                self.expect("(")
                space = self.number()
                self.expect(")")
            else:
                inst.operands = [self.parse_typed()]
        inst.type = ty.ptr_type(space)

    def _atomicrmw(self, inst: Inst) -> None:
        inst.extra["operation"] = self.expect_kind("word", "an atomic operation")
        inst.operands = [self._pointer()]
        self.expect(",")
        inst.operands.append(self.parse_typed())
        inst.type = inst.operands[1].type
        self._memory_tail(inst, 1)

    def _cmpxchg(self, inst: Inst) -> None:
        inst.operands = [self._pointer()]
        for _ in range(2):
            self.expect(",")
            inst.operands.append(self.parse_typed())
        inst.type = ty.struct_type((inst.operands[1].type, ty.I1))
        self._memory_tail(inst, 2)

    def _fence(self, inst: Inst) -> None:
        self._memory_tail(inst, 1)

    def _label(self) -> str:
        self.expect("label")
        return self.expect_kind("local", "a block")

    def _br(self, inst: Inst) -> None:
        if self.at("label"):
            inst.labels = [self._label()]
            return
        inst.operands = [self.parse_typed()]
        if inst.operands[0].type is not ty.I1:
            self.error(f"a branch condition is i1, found {inst.operands[0].type}")
        for _ in range(2):
            self.expect(",")
            inst.labels.append(self._label())

    def _switch(self, inst: Inst) -> None:
        inst.operands = [self.parse_typed()]
        self.expect(",")
        inst.labels = [self._label()]
        self.expect("[")
        while not self.accept("]"):
            inst.operands.append(self.parse_typed())
            self.expect(",")
            inst.labels.append(self._label())

    def _ret(self, inst: Inst) -> None:
        t = self.parse_type()
        if t is not ty.VOID:
            inst.operands = [self.parse_value(t)]

    def _phi(self, inst: Inst) -> None:
        inst.type = self.parse_type()
        while True:
            self.expect("[")
            inst.operands.append(self.parse_value(inst.type))
            self.expect(",")
            inst.labels.append(self.expect_kind("local", "a block"))
            self.expect("]")
            if not (self.at(",") and self.tokens[self.index + 1][1] == "["):
                return
            self.next()

    def skip_attrs(self, one_line: bool = False) -> dict[str, Any]:
        """Reads parameter, return or function attributes up to the next type or punctuation.

        Args:
            one_line: Stop at the end of the line: what follows a call on the next line is an instruction.
        """
        attrs: dict[str, Any] = {}
        line = self.line() if one_line else 0
        if one_line and line != self._line_before():
            return attrs
        while True:
            kind = self.kind()
            if one_line and self.line() != line:
                return attrs
            if kind == "attr":
                attrs[self.next()] = True
            elif kind == "str":
                key = self.next()[1:-1]
                attrs[key] = self.next()[1:-1] if self.accept("=") else True
            elif kind == "word" and not self.at_type():
                if self.peek() in ("prefix", "prologue", "personality"):
                    return attrs
                word = self.next()
                if self.kind() == "num":
                    attrs[word] = self.number()
                elif self.at("("):
                    attrs[word] = self._attr_argument()
                else:
                    attrs[word] = True
            else:
                return attrs

    def _line_before(self) -> int:
        self.index -= 1
        line = self.line()
        self.index += 1
        return line

    def _attr_argument(self) -> Any:
        start = self.index
        self.next()
        if self.at_type():
            t = self.parse_type()
            if self.accept(")"):
                return t
            if self.kind() == "num" and self.tokens[self.index + 1][1] == "," and self.tokens[self.index + 3][1] == ")":
                low, _, high, _ = self.number(), self.next(), self.number(), self.next()
                return [(low, high)]
        if self.kind() == "num" and self.tokens[self.index + 1][1] == ")":
            value = self.number()
            self.expect(")")
            return value
        self.index = start
        self.skip_balanced()
        return True

    def _call(self, inst: Inst) -> None:
        inst.extra["attrs"] = self.skip_attrs()
        result = self.parse_type()
        if self.at("("):  # a full function type, as for variadic callees
            self.skip_balanced()
        inst.type = result
        if self.at("asm"):
            inst.callee = "inline asm"
            strings = []
            while self.kind() in ("word", "str") or self.at(","):
                if self.kind() == "str":
                    strings.append(self.peek()[1:-1])
                self.next()
            inst.extra["asm"] = strings
        elif self.kind() == "global":
            inst.callee = self.next()
        else:
            self.parse_value(ty.ptr_type(0))
            inst.callee = "indirect call"
        self.expect("(")
        while not self.accept(")"):
            t = self.parse_type()
            attrs = {} if t is ty.METADATA else self.skip_value_attrs()
            if "byval" in attrs:
                inst.extra.setdefault("byval", {})[len(inst.operands)] = attrs["byval"]
            inst.operands.append(self.parse_value(t))
            if not self.at(")"):
                self.expect(",")
        inst.extra["attrs"].update(self.skip_attrs(one_line=True))
        if self.at("["):
            self.skip_balanced()
        if inst.callee == "inline asm":
            inline_asm.simplify(inst)

    def skip_value_attrs(self) -> dict[str, Any]:
        """Reads the attributes of a call argument, which stand between its type and its value."""
        attrs: dict[str, Any] = {}
        while self.kind() == "word" and self.peek() not in _VALUE_WORDS:
            word = self.next()
            if self.kind() == "num" and word == "align":
                attrs[word] = self.number()
            elif self.at("("):
                attrs[word] = self._attr_argument()
            else:
                attrs[word] = True
        return attrs

    def _unreachable(self, inst: Inst) -> None:
        return


_VALUE_WORDS = frozenset(
    "true false zeroinitializer poison undef null none splat getelementptr bitcast addrspacecast ptrtoint inttoptr "
    "trunc add sub mul xor shl asm ptrtoaddr".split()
)  # fmt: skip

_FORMS: dict[str, Callable[[InstParser, Inst], None]] = {
    **dict.fromkeys(BINARY, InstParser._binary),
    **dict.fromkeys(CASTS, InstParser._cast),
    "icmp": InstParser._compare,
    "fcmp": InstParser._compare,
    "fneg": InstParser._unary,
    "freeze": InstParser._unary,
    "select": InstParser._select,
    "extractelement": InstParser._extractelement,
    "insertelement": InstParser._insertelement,
    "shufflevector": InstParser._shufflevector,
    "extractvalue": InstParser._extractvalue,
    "insertvalue": InstParser._insertvalue,
    "getelementptr": InstParser._gep,
    "load": InstParser._load,
    "store": InstParser._store,
    "alloca": InstParser._alloca,
    "atomicrmw": InstParser._atomicrmw,
    "cmpxchg": InstParser._cmpxchg,
    "fence": InstParser._fence,
    "br": InstParser._br,
    "switch": InstParser._switch,
    "ret": InstParser._ret,
    "phi": InstParser._phi,
    "call": InstParser._call,
    "unreachable": InstParser._unreachable,
}
TERMINATORS = frozenset(("br", "switch", "ret", "unreachable")) | (FOREIGN - {"landingpad", "va_arg", "catchpad"})


def metadata_text(operand: Operand) -> str | None:
    """The text of a metadata operand, or ``None`` for other operands."""
    return operand.value if isinstance(operand, Const) and operand.kind == "meta" else None
