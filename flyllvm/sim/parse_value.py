"""Parser of types and constants; the base of the module parser."""

from __future__ import annotations

import re
import struct
from typing import Any

from . import types as ty
from .ir import Const, ConstExpr, Module, Operand, Reg
from .lexer import Stream
from .types import Type

_SIMPLE: dict[str, Type] = {
    "void": ty.VOID, "label": ty.LABEL, "metadata": ty.METADATA, "token": ty.TOKEN, "ptr": ty.ptr_type(0), **ty.FLOATS,
}  # fmt: skip
_INT = re.compile(r"i([0-9]+)\Z")
_EXPR_CASTS = ("bitcast", "addrspacecast", "ptrtoint", "inttoptr", "trunc", "ptrtoaddr")
_EXPR_BINARY = ("add", "sub", "mul", "xor", "shl")
_KINDS = {"zeroinitializer": "zero", "poison": "poison", "undef": "undef", "null": "null", "none": "none"}
_FP_FORMATS = {"half": ("<e", "<H"), "float": ("<f", "<I"), "double": ("<d", "<Q")}


def float_bits(t: Type, value: float) -> int:
    """The bit pattern of a Python float in format ``t``, rounded to nearest even."""
    if t is ty.BFLOAT:
        bits: int = struct.unpack("<I", struct.pack("<f", value))[0]
        return (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    to_bytes, to_int = _FP_FORMATS[t.text]
    result: int = struct.unpack(to_int, struct.pack(to_bytes, value))[0]
    return result


class ValueParser(Stream):
    """Reads types and constants from the token stream."""

    __slots__ = ("module",)

    def __init__(self, text: str, source_name: str) -> None:
        super().__init__(text, source_name)
        self.module = Module(text, source_name)
        self.module.metadata = self.metadata

    # ---- types

    def at_type(self) -> bool:
        """Whether the next token starts a type."""
        kind, text, _ = self.tokens[self.index]
        if kind == "word":
            return text in _SIMPLE or _INT.match(text) is not None or text == "target"
        return (kind == "punct" and text in ("<", "[", "{")) or kind == "local"

    def parse_type(self) -> Type:
        """Reads a type; a function type is read as its return type when followed by ``(...)``."""
        kind, text = self.kind(), self.peek()
        if kind == "word":
            return self._named_type(text)
        if kind == "local":
            self.next()
            found = self.module.named_types.get(text)
            if found is None:
                found = self.module.named_types[text] = ty.StructType(None, name=f"%{text}")
            return found
        if self.accept("<"):
            if self.at("{"):
                body = self._struct_body(packed=True)
                self.expect(">")
                return body
            if self.at("vscale"):
                self.error("scalable vectors do not exist on AMDGPU")
            count, elem = self._count_and_elem()
            self.expect(">")
            return ty.vec_type(count, elem)
        if self.accept("["):
            count, elem = self._count_and_elem()
            self.expect("]")
            return ty.array_type(count, elem)
        if self.at("{"):
            return self._struct_body(packed=False)
        self.error(f"expected a type, found {text!r}")

    def _named_type(self, text: str) -> Type:
        found = _SIMPLE.get(text)
        if text == "target":
            return self._target_type()
        if found is None:
            match = _INT.match(text)
            if match is None:
                self.error(f"expected a type, found {text!r}")
            found = ty.int_type(int(match.group(1)))
        self.next()
        if text == "ptr" and self.accept("addrspace"):
            self.expect("(")
            found = ty.ptr_type(self.number())
            self.expect(")")
        return found

    def _target_type(self) -> Type:
        """``target("amdgcn.named.barrier", 0)``, the one such type that AMDGPU code has: 16 bytes."""
        self.next()
        self.expect("(")
        name = self.expect_kind("str", "the name of a target type")
        if name != '"amdgcn.named.barrier"':
            self.error(f"target type {name} has no meaning in the simulator", "use amdgcn.named.barrier, or i32s")
        self.expect(",")
        self.number()
        self.expect(")")
        return ty.vec_type(4, ty.I32)

    def _count_and_elem(self) -> tuple[int, Type]:
        count = self.number()
        self.expect("x")
        return count, self.parse_type()

    def _struct_body(self, packed: bool) -> Type:
        self.expect("{")
        elems = []
        while not self.accept("}"):
            elems.append(self.parse_type())
            if not self.at("}"):
                self.expect(",")
        return ty.struct_type(tuple(elems), packed)

    # ---- values

    def parse_typed(self) -> Operand:
        """Reads ``type value``."""
        t = self.parse_type()
        return self.parse_value(t)

    def parse_value(self, t: Type) -> Operand:
        """Reads a value of a known type."""
        kind, text, _ = self.tokens[self.index]
        if t is ty.METADATA and kind != "meta":
            return Const(t, "meta", repr(self.parse_typed()))  # a value used as metadata: metadata i32 %x
        if kind == "local":
            self.index += 1
            return Reg(t, text)
        if kind == "num":
            self.index += 1
            return self._number_value(t, text)
        if kind == "global":
            self.index += 1
            return Const(t, "global", text)
        if kind == "word":
            return self._word_value(t, text)
        if kind == "str":
            self.index += 1
            return Const(t, "bytes", unescape(text[2:-1] if text.startswith("c") else text[1:-1]))
        if kind == "meta":
            return self._metadata_value(t)
        if text in ("<", "[", "{"):
            return self._aggregate_value(t, text)
        self.error(f"expected a value of type {t}, found {text!r}")

    def _metadata_value(self, t: Type) -> Const:
        text = self.next()
        if text == "!" and self.kind() == "str":
            text += self.next()
        elif self.at("(") or (text == "!" and self.at("{")):
            self.skip_balanced()
        return Const(t, "meta", text)

    def _number_value(self, t: Type, text: str) -> Const:
        if isinstance(t, ty.IntType):
            try:
                value = int(text[1:], 16) if text[0] in "us" else int(text)
            except ValueError:
                self.index -= 1
                self.error(f"{text!r} is not a value of type {t}")
            if not -(1 << (t.bits - 1)) <= value < (1 << t.bits):
                self.index -= 1
                self.error(f"the constant {text} does not fit {t}")
            return Const(t, "int", value & ((1 << t.bits) - 1))
        if isinstance(t, ty.FloatType):
            return Const(t, "fp", self._float_literal(t, text))
        if isinstance(t, ty.OtherType) and t is ty.METADATA:
            return Const(t, "meta", text)
        self.index -= 1
        self.error(f"{text!r} is not a value of type {t}")

    def _float_literal(self, t: Type, text: str) -> int:
        if text.startswith(("0xH", "0xR", "f0x")):
            return int(text[3:], 16)
        if text[1:2] in ("i", "n", "q", "s"):
            return special_float_bits(t, text)
        if text.startswith(("0xL", "0xK", "0xM")):
            self.index -= 1
            self.error(f"floating-point literal {text!r} of a format that AMDGPU lacks")
        if text.startswith("0x"):
            # LLVM writes float and double alike as the bits of a double.
            bits = int(text, 16)
            if t is ty.DOUBLE and bits >> 64 == 0:
                return bits
            exact = None if bits >> 64 else narrow_double_bits(t, bits)
            if exact is None:
                self.index -= 1
                self.error(f"{text!r} is not a value of type {t}")
            return exact
        try:
            return float_bits(t, float(text))
        except (OverflowError, ValueError):
            self.index -= 1
            self.error(f"{text!r} is not a value of type {t}")

    def _word_value(self, t: Type, text: str) -> Operand:
        if text in ("true", "false"):
            self.index += 1
            return Const(t, "int", int(text == "true"))
        if text in _KINDS:
            self.index += 1
            return Const(t, _KINDS[text])
        if text == "splat":
            self.index += 1
            self.expect("(")
            elem = self.parse_typed()
            self.expect(")")
            if not isinstance(t, ty.VecType):
                self.error(f"splat of a type that is no vector: {t}")
            return Const(t, "agg", (elem,) * t.count)
        if text == "getelementptr" or text in _EXPR_CASTS or text in _EXPR_BINARY:
            return self._const_expr(t, text)
        if text == "asm":
            self.error("inline assembly has no meaning in the simulator", "write the instruction as an intrinsic")
        self.error(f"expected a value of type {t}, found {text!r}")

    def _const_expr(self, t: Type, op: str) -> Const:
        self.next()
        while self.kind() == "word" and not self.at("("):
            word = self.next()
            if word == "inrange":
                self.skip_balanced()
        self.expect("(")
        base: Type | None = None
        if op == "getelementptr":
            base = self.parse_type()
            self.expect(",")
        operands = [self.parse_typed()]
        if op in _EXPR_CASTS:
            self.expect("to")
            t = self.parse_type()
        while self.accept(","):
            operands.append(self.parse_typed())
        self.expect(")")
        return Const(t, "expr", ConstExpr(op, operands, base))

    def _aggregate_value(self, t: Type, text: str) -> Const:
        self.next()
        close = {"<": ">", "[": "]", "{": "}"}[text]
        packed = text == "<" and self.accept("{")
        elems: list[Operand] = []
        if packed:
            close = "}"
        while not self.accept(close):
            elems.append(self.parse_typed())
            if not self.at(close):
                self.expect(",")
        if packed:
            self.expect(">")
        if not all(isinstance(e, Const) for e in elems):
            self.error(
                f"a constant of type {t} holds a value that is none", "build it with insertelement or insertvalue"
            )
        want: Any = getattr(t, "count", None)
        if want is None:
            want = len(getattr(t, "elems", None) or ())
        if want != len(elems):
            self.error(f"{t} needs {want} elements, found {len(elems)}")
        return Const(t, "agg", tuple(elems))


def unescape(text: str) -> bytes:
    """Bytes of an LLVM string literal: ``\\41`` is a hexadecimal escape."""
    raw = text.encode("utf-8")
    return re.sub(rb"\\([0-9a-fA-F]{2})|\\\\", lambda m: bytes([int(m[1], 16)]) if m[1] else b"\\", raw)


_FIELDS = {"double": (11, 52), "float": (8, 23), "half": (5, 10), "bfloat": (8, 7)}


def special_float_bits(t: Type, text: str) -> int:
    """Bits of ``+inf``, ``-qnan``, ``+nan(0x1)`` and so on, as recent LLVM prints them."""
    exponent, mantissa = _FIELDS[t.text]
    bits = (int(text[0] == "-") << (exponent + mantissa)) | (((1 << exponent) - 1) << mantissa)
    if "inf" in text:
        return bits
    payload = int(text[text.index("(") + 1 : -1], 16) if "(" in text else 0
    quiet = 0 if "snan" in text else 1 << (mantissa - 1)
    return bits | quiet | payload


def narrow_double_bits(t: Type, bits: int) -> int | None:
    """Bits in format ``t`` of a value written as double bits; NaN payloads are kept.  ``None`` out of its range."""
    exponent, mantissa, sign = (bits >> 52) & 0x7FF, bits & ((1 << 52) - 1), bits >> 63
    width = _FIELDS[t.text]
    if exponent == 0x7FF:
        return (sign << sum(width)) | (((1 << width[0]) - 1) << width[1]) | (mantissa >> (52 - width[1]))
    try:
        return float_bits(t, struct.unpack("<d", struct.pack("<Q", bits))[0])
    except OverflowError:
        return None
