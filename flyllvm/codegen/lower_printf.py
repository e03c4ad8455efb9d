"""Lowering of ``gpu.printf``: a record in the buffer that `flyllvm.printf` describes."""

from __future__ import annotations

from ..ir import lltype as ll, types as t
from ..ir.protocols import LLValue
from ..printf import HEAD_WORDS, HEADER_BYTES, PARAMETER, WORDS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..ir.core import Op
    from .function import FunctionBuilder
    from .lower import Handler, Lowering

_PIECES = r"(\{\{|\}\}|\{:u\}|\{\}|[{}])"
_GLOBAL = 1


def _printf(lw: Lowering, op: Op) -> None:
    em = lw.em
    if em.module.backend.name != "amdgpu":
        raise em.fail(f"gpu.printf for {em.target}", "print in kernels for a GPU")
    text, kinds = _typed_format(lw, op)
    words = [em.const(ll.I32, em.module.format_number(text) + 1), *_place(lw)]
    for operand, kind in zip(op.operands, kinds):
        words += _words(em, lw.get(operand), kind)
    lw.facts.prints = True
    buffer = LLValue(ll.ptr(_GLOBAL), f"%{PARAMETER}", None, True, 0)
    size = em.const(ll.I64, 4 * len(words))
    offset = em.value(ll.I64, _add(em, buffer, size))
    capacity = em.value(ll.I64, f"load i64, {buffer.type.text} {em.gep(buffer, None, 8).text}, align 8", True)
    fits = em.icmp("ule", em.binary("add", offset, size), capacity)

    def write() -> None:
        first = em.gep(buffer, offset, HEADER_BYTES)
        for i, word in enumerate(words):
            place = em.gep(first, None, 4 * i)
            em.line(f"store i32 {word.text}, {place.type.text} {place.text}, align 4")

    def drop() -> None:
        em.value(ll.I64, _add(em, em.gep(buffer, None, 16), em.const(ll.I64, 1)))

    em.guarded(fits, write, None)
    em.guarded(em.binary("xor", fits, em.const(ll.I1, 1)), drop, None)


def _add(em: FunctionBuilder, pointer: LLValue, value: LLValue) -> str:
    return f'atomicrmw add {pointer.type.text} {pointer.text}, i64 {value.text} syncscope("agent") monotonic, align 8'


def _place(lw: Lowering) -> list[LLValue]:
    """The workgroup and the work item, as words of a record."""
    em, backend = lw.em, lw.em.module.backend
    x, y, z = (backend.thread_id(em, lw.facts, dim) for dim in range(3))
    high = em.binary("or", em.binary("shl", y, em.const(ll.I32, 10)), em.binary("shl", z, em.const(ll.I32, 20)))
    words = [*(backend.block_id(em, lw.facts, dim) for dim in range(3)), em.binary("or", x, high)]
    if len(words) + 1 != HEAD_WORDS:
        raise em.fail(f"a record of {len(words) + 1} words in front of its values", f"the buffer has {HEAD_WORDS}")
    return words


def _words(em: FunctionBuilder, value: LLValue, kind: str) -> list[LLValue]:
    """A value as words, the low one first: what is narrower than a word is widened."""
    wide = WORDS[kind] == 2
    if kind[0] in "us" or kind == "bool":
        if not wide:
            return [em.cast("sext" if kind[0] == "s" else "zext", value, ll.I32)]
    else:
        if value.type.bits < 32:
            value = em.cast("fpext", value, ll.F32)
        value = em.bitcast(value, ll.I64 if wide else ll.I32)
    if not wide:
        return [value]
    return [em.cast("trunc", x, ll.I32) for x in (value, em.binary("lshr", value, em.const(ll.I64, 32)))]


def _typed_format(lw: Lowering, op: Op) -> tuple[str, list[str]]:
    """The format with each ``{}`` and ``{:u}`` replaced by the type of its operand, and these types."""
    import re  # kernels that do not print do without it

    pieces = re.split(_PIECES, op.attrs["format"])
    places = [i for i in range(1, len(pieces), 2) if pieces[i] in ("{}", "{:u}")]
    alone = any(pieces[i] in ("{", "}") for i in range(1, len(pieces), 2))
    if alone or len(places) != len(op.operands):
        raise lw.em.fail(
            f"gpu.printf {op.attrs['format']!r} with {len(op.operands)} operands",
            "write one {} for each operand ({:u} for an unsigned one), and {{ for a brace",
        )
    kinds = [_kind(lw, v.type, pieces[i] == "{:u}") for i, v in zip(places, op.operands)]
    for i, kind in zip(places, kinds):
        pieces[i] = "{" + kind + "}"
    return "".join(pieces), kinds


def _kind(lw: Lowering, type: t.Type, unsigned: bool) -> str:
    """The name of a type in formats."""
    kind = type.text
    if isinstance(type, t.IntType):
        kind = "bool" if type.bits == 1 else f"{'u' if unsigned else 's'}{type.bits}"
    if kind not in WORDS:
        raise lw.em.fail(f"gpu.printf of {type}", "print i1, i8 to i64, f16, bf16, f32 or f64: convert it first")
    return kind


TABLE: dict[str, Handler] = {"gpu.printf": _printf}
