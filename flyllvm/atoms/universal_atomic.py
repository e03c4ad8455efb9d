"""``fly.universal_atomic``: a read-modify-write of memory by one thread, on every target.

``fly.universal_atomic<add, f32>``, with ``scope = agent`` and ``order = acq_rel`` where they are not the defaults
``system`` and ``monotonic``.  The source is in registers, the destination in generic, global or shared memory; the old
value is dropped.

LLVM selects the instruction of the chip, or a loop of compare-and-swap where the chip has none for the type, the space
or the scope (floats at system scope, for instance).

Source: LLVM language reference, ``atomicrmw``; AMDGPUUsage, "Memory scopes".
"""

from __future__ import annotations

from ..errors import AtomError
from ..ir import lltype as ll, types as t
from ..ir.protocols import register_payload
from .copy_op import StatelessCopy
from .spelling import options, split_params

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..ir.protocols import Emitter, LLValue, MemOperand

#: Operation: what LLVM calls it on integers and on floats; empty where there is none.
OPERATIONS = {
    "add": ("add", "fadd"),
    "sub": ("sub", "fsub"),
    "max": ("max", "fmax"),
    "min": ("min", "fmin"),
    "umax": ("umax", ""),
    "umin": ("umin", ""),
    "and": ("and", ""),
    "or": ("or", ""),
    "xor": ("xor", ""),
    "inc": ("uinc_wrap", ""),
    "dec": ("udec_wrap", ""),
    "xchg": ("xchg", "xchg"),
}
#: Scope: LLVM's syncscope, the whole system where empty.
SCOPES = {
    "system": "",
    "agent": "agent",
    "cluster": "cluster",
    "workgroup": "workgroup",
    "wavefront": "wavefront",
    "singlethread": "singlethread",
    "one-as": "one-as",
    "agent-one-as": "agent-one-as",
    "cluster-one-as": "cluster-one-as",
    "workgroup-one-as": "workgroup-one-as",
    "wavefront-one-as": "wavefront-one-as",
    "singlethread-one-as": "singlethread-one-as",
}
ORDERS = ("monotonic", "acquire", "release", "acq_rel", "seq_cst")
_SCALARS: tuple[t.ScalarType, ...] = (t.I32, t.I64, t.F16, t.BF16, t.F32, t.F64)
#: Types: element and count.
TYPES: dict[str, tuple[t.ScalarType, int]] = {
    **{str(x): (x, 1) for x in _SCALARS},
    "vector<2xf16>": (t.F16, 2),
    "vector<2xbf16>": (t.BF16, 2),
}


class UniversalAtomic(StatelessCopy):
    """An atomic update of memory with a value from registers.

    Args:
        operation: A key of ``OPERATIONS``.  ``max`` and ``min`` are signed on integers, ``umax`` and ``umin`` not.
        type: A key of ``TYPES``.
        scope: A key of ``SCOPES``: who sees the update as one.
        order: One of ``ORDERS``.

    Raises:
        AtomError: One of these is unknown, or floats have no such operation.
    """

    __slots__ = ("count", "elem", "operation", "order", "scope", "type_name")

    mnemonic = "fly.universal_atomic"
    spaces = (("register", "global"), ("register", "shared"), ("register", "generic"))

    def __init__(
        self, operation: str, type: t.ScalarType | str, scope: str = "system", order: str = "monotonic"
    ) -> None:
        self.type_name = str(type)
        check_word(self.mnemonic, "operation", operation, OPERATIONS)
        check_word(self.mnemonic, "type", self.type_name, TYPES)
        check_word(self.mnemonic, "scope", scope, SCOPES)
        check_word(self.mnemonic, "order", order, ORDERS)
        self.elem, self.count = TYPES[self.type_name]
        if not _exists(operation, self.type_name):
            legal = ", ".join(name for name in OPERATIONS if _exists(name, self.type_name))
            raise AtomError(f"universal_atomic<{operation}, {type}>: no such operation on {type}", fix=f"use {legal}")
        self.operation, self.scope, self.order = operation, scope, order
        self.bit_size = self.elem.bits * self.count
        tail = f", scope = {scope}" if scope != "system" else ""
        self.params = f"{operation}, {type}{tail}" + (f", order = {order}" if order != "monotonic" else "")

    def check_operands(self, src: t.PtrType, dst: t.PtrType) -> None:
        """Registers to memory with atomics, of the atom's element type.

        Raises:
            AtomError: They are not.
        """
        if src.space != "register" or dst.space not in ("generic", "global", "shared"):
            raise AtomError(
                f"{self.name} cannot update {dst} with {src}",
                fix="the source is in registers, the destination in generic, global or shared memory",
            )
        check_element(self.name, self.elem, dst)

    def emit_store(self, em: Emitter, state: LLValue | None, value: LLValue, dst: MemOperand) -> None:
        """One ``atomicrmw`` whose result nobody reads."""
        type = ll.vec_or_scalar(self.count, self.elem.storage)
        value = em.bitcast(value, type)
        where = em.address(dst, type.bits // 8)
        word = OPERATIONS[self.operation][isinstance(self.elem, t.FloatType)]
        scope = f' syncscope("{SCOPES[self.scope]}")' if SCOPES[self.scope] else ""
        # LLVM refuses atomics below their natural alignment on some paths and splits none: promise it.
        align = max(em.alignment(dst), type.bits // 8)
        em.raw(f"atomicrmw {word} {where!r}, {value!r}{scope} {self.order}, align {align}", type)


def _exists(operation: str, type_name: str) -> bool:
    """Whether LLVM has the operation on the type; it exchanges no vectors."""
    elem, count = TYPES[type_name]
    return bool(OPERATIONS[operation][isinstance(elem, t.FloatType)]) and (count == 1 or operation != "xchg")


def check_word(mnemonic: str, what: str, word: str, known: Iterable[str]) -> None:
    """Checks that a word is one of the known ones.

    Raises:
        AtomError: It is not.
    """
    legal = list(known)
    if word not in legal:
        raise AtomError(f"{mnemonic.rpartition('.')[2]}: unknown {what} {word!r}", fix=f"one of: {', '.join(legal)}")


def check_element(name: str, elem: t.ScalarType, ptr: t.PtrType) -> None:
    """Checks that memory holds the elements an atomic works on.

    Raises:
        AtomError: It does not.
    """
    if ptr.elem != elem:
        raise AtomError(
            f"{name} cannot update elements of {ptr.elem}",
            fix=f"use memory of {elem} (fx.recast_iter views it), or the atomic of {ptr.elem}",
        )


def parse(params: str) -> UniversalAtomic:
    """The atom of ``add, f32[, scope = agent][, order = acq_rel]``."""
    operation, type_name, *rest = [*split_params(params), "", ""][: max(2, len(split_params(params)))]
    found = options(UniversalAtomic.mnemonic, params, rest, ("scope", "order"))
    return UniversalAtomic(operation, type_name, found.get("scope", "system"), found.get("order", "monotonic"))


def atoms() -> list[UniversalAtomic]:
    """One atom for each operation and type."""
    return [UniversalAtomic(operation, name) for name in TYPES for operation in OPERATIONS if _exists(operation, name)]


register_payload(UniversalAtomic.mnemonic, parse)
