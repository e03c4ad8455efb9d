"""Values, operations, blocks and regions of the fly IR.

The IR is a tree: an operation owns regions, a region here has exactly one block, and control flow is
structured (``scf.if``, ``scf.for``, ``scf.while``) with values yielded by position.  A value may be
used anywhere inside the region that defines it and in the regions nested there.
"""

from __future__ import annotations

from types import MappingProxyType

from ..errors import VerifyError
from .location import UNKNOWN, Location
from .types import IntType, Type

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any, ClassVar


class Value:
    """An SSA value: the result of an operation or an argument of a block.

    An integer value is also a dynamic leaf of the layout algebra (``layout.DynLeaf``): arithmetic on
    it emits operations through the builder that is current.

    Attributes:
        type: Its type.
        owner: The operation (result) or block (argument) that defines it.
        index: Position among the owner's results or arguments.
        divisibility: The value is known to be a multiple of this (integers; 1 when unknown).
        range: Inclusive bounds of the signed value where they are known.
        name: Author's name for printing, or ``""``.
    """

    __slots__ = ("divisibility", "index", "name", "owner", "range", "type")

    def __init__(self, type: Type, owner: Op | Block, index: int, name: str = "") -> None:
        self.type = type
        self.owner = owner
        self.index = index
        self.name = name
        self.divisibility = 1
        self.range: tuple[int, int] | None = None

    @property
    def block(self) -> Block:
        """The block that defines the value."""
        block = self.owner if isinstance(self.owner, Block) else self.owner.parent
        if block is None:
            raise VerifyError(f"value of {self.owner} is used, but the operation is in no block")
        return block

    @property
    def op(self) -> Op | None:
        """The defining operation, ``None`` for a block argument."""
        owner = self.owner
        return None if owner.__class__ is Block else owner  # type: ignore[return-value]

    def __repr__(self) -> str:
        return f"<%{self.name or '?'}: {self.type}>"

    def __bool__(self) -> bool:
        raise VerifyError(
            f"a run-time value of type {self.type} has no truth value while tracing",
            fix="use a traced 'if' / select on it, or a compile-time value",
        )

    # The leaf protocol of the layout algebra.

    @property
    def width(self) -> int:
        """Width in bits as a layout leaf (32 or 64)."""
        if isinstance(self.type, IntType):
            return self.type.bits
        raise VerifyError(f"a value of type {self.type} cannot be a layout leaf", fix="use i32 or i64")

    def static_value(self) -> int | None:
        """The integer if it is known at compile time, signed."""
        owner = self.owner
        if owner.name != "arith.constant":
            return None
        value = owner.attrs["value"]  # type: ignore[union-attr]
        if isinstance(value, int) and isinstance(self.type, IntType):
            bits = self.type.bits
            # A pattern of bits such as 0xFFFFFFFF is the signed number, except for i1.
            return value - (1 << bits) if bits > 1 and value >= 1 << (bits - 1) else value
        return None

    def same_as(self, other: object) -> bool:
        """True when both are the same SSA value."""
        return self is other


def _leaf_op(name: str, swap: bool = False) -> Callable[[Value, Any], Any]:
    def method(self: Value, other: Any) -> Any:
        from .builder import Builder

        build = getattr(Builder.current(), name)
        return build(other, self) if swap else build(self, other)

    return method


for _dunder, _name in (
    ("add", "index_add"), ("sub", "index_sub"), ("mul", "index_mul"), ("floordiv", "index_div"),
    ("mod", "index_rem"), ("and", "index_and"), ("xor", "index_xor"), ("lshift", "index_shl"),
    ("rshift", "index_shr"),
):  # fmt: skip
    setattr(Value, f"__{_dunder}__", _leaf_op(_name))
    setattr(Value, f"__r{_dunder}__", _leaf_op(_name, swap=True))
for _method, _name, _swap in (
    ("ceil_div_", "index_ceil_div", False), ("rceil_div_", "index_ceil_div", True), ("min_", "index_min", False),
    ("max_", "index_max", False), ("less_", "index_less", False), ("greater_", "index_less", True),
    ("equal_", "index_equal", False), ("and_", "andi", False),
):  # fmt: skip
    setattr(Value, _method, _leaf_op(_name, _swap))


class Block:
    """A list of operations with arguments.

    Attributes:
        args: Block arguments.
        ops: Operations in order; the last one of a nested block is its terminator.
        parent: The operation that owns the block, ``None`` for a kernel body.
        depth: Nesting depth, 0 for a kernel body.
    """

    __slots__ = ("args", "depth", "ops", "parent")

    #: No operation: what asks the owner of a value for its name need not ask what it is.
    name: ClassVar[str] = ""

    def __init__(self, arg_types: Sequence[Type] = (), parent: Op | None = None, depth: int = 0) -> None:
        self.parent = parent
        self.depth = depth
        self.ops: list[Op] = []
        self.args = [Value(t, self, i) for i, t in enumerate(arg_types)]

    def add_arg(self, type: Type, name: str = "") -> Value:
        """Appends an argument."""
        value = Value(type, self, len(self.args), name)
        self.args.append(value)
        return value

    def append(self, op: Op) -> Op:
        """Appends an operation."""
        op.parent = self
        self.ops.append(op)
        return op

    def walk(self) -> Iterator[Op]:
        """All operations, outer before inner, in order."""
        for op in self.ops:
            yield op
            for region in op.regions:
                yield from region.walk()


#: Regions nest at most this deep in text and in a verified kernel.
MAX_DEPTH = 100
#: As a bound of ``Op.arity``: any number.
ANY = 1 << 30


#: The attributes of operations without any: most have none, and a dict of their own would be collected with them.
_NONE: dict[str, Any] = MappingProxyType({})  # type: ignore[assignment]


class Op:
    """Base of all operations.

    Class attributes:
        name: Spelling, ``dialect.mnemonic``.
        pure: No effect and no trap for any operand: may be merged, moved and dropped.
        attr_names: Attributes the class takes, in printing order.
        arity: (fewest operands, most operands, results, regions); ``ANY`` results are checked by ``verify``.

    Attributes:
        operands: Input values.
        results: Output values.
        attrs: Compile-time facts by name; read-only where the operation was made without any.
        regions: One block per region.
        loc: The author's location.
        parent: The block that holds the operation.
        checked: It passed the verifier and was not changed since; passes reset it where they change operands.
    """

    __slots__ = ("attrs", "checked", "loc", "operands", "parent", "regions", "results")

    name: ClassVar[str] = ""
    pure: ClassVar[bool] = False
    attr_names: ClassVar[tuple[str, ...]] = ()
    arity: ClassVar[tuple[int, int, int, int]] = (0, ANY, ANY, 0)

    def __init__(
        self,
        operands: Sequence[Value] = (),
        result_types: Sequence[Type] = (),
        attrs: dict[str, Any] | None = None,
        regions: Sequence[Block] = (),
        loc: Location = UNKNOWN,
    ) -> None:
        self.operands = list(operands)
        self.results = (
            [Value(result_types[0], self, 0)]
            if len(result_types) == 1
            else [Value(t, self, i) for i, t in enumerate(result_types)]
        )
        self.attrs = _NONE if attrs is None else attrs
        self.loc = loc
        self.parent: Block | None = None
        self.checked = False
        self.regions: tuple[Block, ...] = ()
        if regions:
            self.regions = tuple(regions)
            for region in regions:
                region.parent = self

    @property
    def result(self) -> Value:
        """The only result."""
        if len(self.results) != 1:
            raise VerifyError(f"{self.name} has {len(self.results)} results, not one", self.loc)
        return self.results[0]

    def verify(self) -> None:
        """Checks types and attributes of this operation.

        Raises:
            VerifyError: Names the operation, the rule and the author's line.
        """

    def fail(self, what: str, fix: str | None = None) -> VerifyError:
        """An error about this operation, to be raised."""
        return VerifyError(f"{self.name}: {what}", self.loc, fix)

    def __repr__(self) -> str:
        return f"<{self.name} {[o.type for o in self.operands]} -> {[r.type for r in self.results]}>"


_new = object.__new__


def append_checked(block: Block, cls: type[Op], operands: list[Value], type: Type, loc: Location) -> Value:
    """Appends an operation of one result without attributes and regions; returns the result.

    The same as ``block.append(cls(operands, [type], loc=loc))`` in half the time, for passes that unroll.  The caller
    has checked its types, so it counts as checked; the list of operands becomes the operation's own.
    """
    op = _new(cls)
    value = _new(Value)
    value.type, value.owner, value.index, value.name = type, op, 0, ""
    value.divisibility, value.range = 1, None
    op.operands, op.results, op.attrs, op.regions = operands, [value], _NONE, ()
    op.loc, op.parent, op.checked = loc, block, True
    block.ops.append(op)
    return value


OPS: dict[str, type[Op]] = {}


def op(cls: type[Op]) -> type[Op]:
    """Class decorator: makes an operation known to the parser by its name."""
    OPS[cls.name] = cls
    return cls


class Kernel:
    """One GPU kernel: named arguments and a body.

    Attributes:
        name: Symbol name.
        body: The body block; its arguments are the kernel's.
        arg_attrs: Per argument: ``name``, ``align`` (bytes), ``noalias``, ``readonly``, ``divisibility``, ...
        attrs: ``known_block_size``, ``waves_per_eu``, ``target``, ``stage`` and hints.
        loc: Location of the function.
    """

    __slots__ = ("arg_attrs", "attrs", "body", "loc", "name")

    def __init__(self, name: str, loc: Location = UNKNOWN) -> None:
        self.name = name
        self.body = Block()
        self.arg_attrs: list[dict[str, Any]] = []
        self.attrs: dict[str, Any] = {"stage": "fly"}
        self.loc = loc

    def add_arg(self, type: Type, name: str, **attrs: Any) -> Value:
        """Appends a kernel argument."""
        self.arg_attrs.append({"name": name, **attrs})
        value = self.body.add_arg(type, name)
        value.divisibility = attrs.get("divisibility", 1)
        return value

    @property
    def args(self) -> list[Value]:
        """The kernel's arguments."""
        return self.body.args

    def walk(self) -> Iterator[Op]:
        """All operations of the body."""
        return self.body.walk()


class Module:
    """Kernels that are compiled into one code object."""

    __slots__ = ("attrs", "kernels")

    def __init__(self, kernels: Sequence[Kernel] = (), attrs: dict[str, Any] | None = None) -> None:
        self.kernels = list(kernels)
        self.attrs = {} if attrs is None else attrs
