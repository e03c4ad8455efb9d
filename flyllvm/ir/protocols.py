"""What atoms must provide, and the emitter they write to.

``ir`` never imports ``atoms``: it knows a payload only through these protocols and through the
registry that maps a mnemonic to the functions that parse it.
"""

from __future__ import annotations

from ..errors import ParseError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import ClassVar, Protocol, runtime_checkable

    from ..layout import Layout
    from ..state import StateStruct
    from ..target import Target
    from .lltype import LLType
    from .types import PtrType, ScalarType
else:
    # What typing's would do, without typing: its import is a tenth of a start.

    class _ByMembers(type):
        """Protocol classes: an object is an instance if it has their members."""

        def __instancecheck__(cls, value: object) -> bool:
            return all([hasattr(value, name) for name in cls.members])

    class Protocol(metaclass=_ByMembers):
        """The base of protocol classes; nothing inherits from these but other protocols."""

    def runtime_checkable(cls: type) -> type:
        """Allows ``isinstance`` with a protocol."""
        cls.members = [name for name in vars(cls) if not name.startswith("_")]
        return cls


class LLValue:
    """An LLVM value during emission: its type, its operand text, and what is known of it.

    Attributes:
        type: LLVM type.
        text: Operand text: ``%12``, ``5``, ``zeroinitializer``.
        const: The Python number if the value is a known integer or float constant, else ``None``.
        uniform: All lanes of a wave hold the same value.
        level: Nesting depth of the scope that defines the value: 0 for constants and the kernel's body;
            ``ANY_LEVEL`` when unknown.  Pure address arithmetic is emitted outside loops down to this depth.
    """

    __slots__ = ("const", "level", "text", "type", "uniform")

    ANY_LEVEL: ClassVar[int] = 1 << 30

    def __init__(
        self,
        type: LLType,
        text: str,
        const: int | float | None = None,
        uniform: bool = False,
        level: int = 1 << 30,
    ) -> None:
        self.type = type
        self.text = text
        self.const = const
        self.uniform = uniform or const is not None
        self.level = 0 if const is not None else level

    def __repr__(self) -> str:
        return f"{self.type.text} {self.text}"


class MemOperand:
    """A memory operand of an atom call: where the first element lives.

    Attributes:
        type: fly pointer type (element, space, alignment in bytes, swizzle).
        base: The LLVM pointer; for ``buffer_desc`` the ``ptr addrspace(8)`` descriptor.
        offset: Run-time byte offset from ``base`` (i32, or i64 in global memory), or ``None`` for 0.
            The swizzle of the type is *not* applied yet.
        const_offset: Constant byte offset to add.
        count: Elements in the view.
        offset_align: ``offset`` is known to be a multiple of this many bytes (a power of two).
    """

    __slots__ = ("base", "const_offset", "count", "offset", "offset_align", "type")

    def __init__(
        self,
        type: PtrType,
        base: LLValue,
        offset: LLValue | None = None,
        const_offset: int = 0,
        count: int = 1,
        offset_align: int = 1,
    ) -> None:
        self.type = type
        self.base = base
        self.offset = offset
        self.const_offset = const_offset
        self.count = count
        self.offset_align = offset_align


class Emitter(Protocol):
    """What an atom may ask of code generation while it emits one call.

    Every method that makes an instruction returns its value; constants fold.  Intrinsic names are
    given without ``llvm.`` (``amdgcn.mfma.f32.16x16x16f16``) and are checked against the signature
    table and the target before LLVM sees them.
    """

    target: Target

    def const(self, type: LLType, value: int | float) -> LLValue: ...
    def zero(self, type: LLType) -> LLValue: ...
    def poison(self, type: LLType) -> LLValue: ...
    def bitcast(self, value: LLValue, type: LLType) -> LLValue: ...
    def binary(self, op: str, a: LLValue, b: LLValue, flags: str = "") -> LLValue: ...
    def cast(self, op: str, value: LLValue, type: LLType) -> LLValue: ...
    def icmp(self, predicate: str, a: LLValue, b: LLValue) -> LLValue: ...
    def select(self, cond: LLValue, a: LLValue, b: LLValue) -> LLValue: ...
    def extract_value(self, value: LLValue, index: int) -> LLValue: ...
    def insert_value(self, value: LLValue, element: LLValue, index: int) -> LLValue: ...
    def extract_element(self, value: LLValue, index: int) -> LLValue: ...
    def insert_element(self, value: LLValue, element: LLValue, index: int) -> LLValue: ...
    def shuffle(self, a: LLValue, b: LLValue | None, mask: Sequence[int]) -> LLValue: ...
    def intrinsic(self, name: str, result: LLType, args: Sequence[LLValue]) -> LLValue: ...
    def load(self, mem: MemOperand, type: LLType) -> LLValue: ...
    def store(self, value: LLValue, mem: MemOperand) -> None: ...
    def address(self, mem: MemOperand, access_bytes: int) -> LLValue: ...
    def alignment(self, mem: MemOperand) -> int: ...
    def buffer_offset(self, mem: MemOperand, access_bytes: int) -> LLValue: ...
    def guarded(self, pred: LLValue, body: Callable[[], LLValue | None], old: LLValue | None) -> LLValue | None: ...
    def raw(self, text: str, type: LLType) -> LLValue: ...


@runtime_checkable
class MayStatic(Protocol):
    """An atom operation that can be rebuilt from its type alone (stateless atoms)."""

    def is_static(self) -> bool: ...
    def rebuild(self) -> object: ...


@runtime_checkable
class StatefulOp(Protocol):
    """An atom operation with run-time state."""

    @property
    def state(self) -> StateStruct: ...


class AtomOp(Protocol):
    """Common part of copy and mma operations.

    ``str(op)`` is the fly spelling, ``!fly_rocdl.cdna3.mfma<16x16x16, (f16, f16) -> f32>``.
    """

    @property
    def mnemonic(self) -> str: ...
    @property
    def thr_layout(self) -> Layout: ...
    def check_target(self, target: Target) -> None: ...
    def __str__(self) -> str: ...


class CopyOp(AtomOp, Protocol):
    """One copy instruction.

    The bit layouts map (thread, bit) to a bit index of the atom's tile; ``val_bits`` views of them
    come from ``recast_layout``.
    """

    @property
    def bit_size(self) -> int: ...
    @property
    def bit_layout_src(self) -> Layout: ...
    @property
    def bit_layout_dst(self) -> Layout: ...
    @property
    def bit_layout_ref(self) -> Layout: ...
    def check_operands(self, src: PtrType, dst: PtrType) -> None: ...
    def emit_atom_call(
        self, em: Emitter, state: LLValue | None, src: MemOperand, dst: MemOperand, pred: LLValue | None
    ) -> None: ...
    def emit_atom_call_ssa(
        self,
        em: Emitter,
        state: LLValue | None,
        src: MemOperand | LLValue,
        dst: MemOperand | LLType,
        pred: LLValue | None,
        old: LLValue | None,
    ) -> LLValue | None: ...


class MmaOp(AtomOp, Protocol):
    """One matrix instruction: ``D = A * B + C``; layouts map (thread, value) to a column-major index."""

    @property
    def shape_mnk(self) -> tuple[int, int, int]: ...
    @property
    def blocks(self) -> int: ...
    @property
    def types(self) -> tuple[ScalarType, ScalarType, ScalarType, ScalarType]: ...
    @property
    def layout_a(self) -> Layout: ...
    @property
    def layout_b(self) -> Layout: ...
    @property
    def layout_c(self) -> Layout: ...
    def emit_atom_call(
        self, em: Emitter, state: LLValue | None, d: MemOperand, a: MemOperand, b: MemOperand, c: MemOperand
    ) -> None: ...
    def emit_atom_call_ssa(self, em: Emitter, state: LLValue | None, a: LLValue, b: LLValue, c: LLValue) -> LLValue: ...


# --- payload registry ----------------------------------------------------------------------------

_PAYLOADS: dict[str, Callable[[str], object]] = {}
_LOADERS: dict[str, str] = {}


def register_payload(mnemonic: str, parse: Callable[[str], object]) -> None:
    """Makes a payload type known to the IR parser.

    Args:
        mnemonic: The fly spelling without ``!`` and parameters, e.g. ``fly_rocdl.cdna3.mfma``.
        parse: Builds the operation from the text between ``<`` and ``>`` (empty without them).
    """
    _PAYLOADS[mnemonic] = parse


def register_payload_module(prefix: str, module: str) -> None:
    """Names the module to import when a mnemonic starts with ``prefix`` and is not known yet."""
    _LOADERS[prefix] = module


def parse_payload(mnemonic: str, params: str) -> object:
    """Builds the atom operation a type names.

    Raises:
        ParseError: No atom family has this mnemonic.
    """
    parse = _PAYLOADS.get(mnemonic)
    if parse is None:
        for prefix, module in _LOADERS.items():
            if mnemonic.startswith(prefix):
                import importlib

                importlib.import_module(module)
        parse = _PAYLOADS.get(mnemonic)
    if parse is None:
        known = ", ".join(sorted({*_PAYLOADS, *_LOADERS})) or "none: import flyllvm.atoms first"
        raise ParseError(f"unknown atom operation !{mnemonic}", fix=f"known operations: {known}")
    return parse(params)
