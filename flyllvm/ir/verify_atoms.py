"""What the verifier checks of atoms and sizes: targets, threads, state, LDS, divergence around wave-wide products."""

from __future__ import annotations

from ..errors import VerifyError
from . import types as t
from .atom_state import payload_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ..target import Target
    from .core import Block, Kernel, Op, Value

_ATOM_TYPES = (t.CopyAtomType, t.MmaAtomType, t.TiledCopyType, t.TiledMmaType)
#: A thread id is compared with a constant by one of these.
_COMPARE: dict[str, Callable[[int, int], bool]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "slt": lambda a, b: a < b,
    "sle": lambda a, b: a <= b,
    "sgt": lambda a, b: a > b,
    "sge": lambda a, b: a >= b,
    "ult": lambda a, b: a < b % (1 << 32),
    "ule": lambda a, b: a <= b % (1 << 32),
    "ugt": lambda a, b: a > b % (1 << 32),
    "uge": lambda a, b: a >= b % (1 << 32),
}
_SWAPPED = {"lt": "gt", "gt": "lt", "le": "ge", "ge": "le"}


class AtomRules:
    """The rules for one kernel.

    Attributes:
        kernel: The kernel.
        target: Where it will run, ``None`` when unknown.
        block: Known block size in threads, by dimension; ``None`` when unknown.
        lds_bytes: LDS allocated so far, in bytes.
        checked: Texts of the atom types that passed.
        passed: The atoms whose calls passed, each with the block of the call.
    """

    __slots__ = ("block", "checked", "kernel", "lds_bytes", "passed", "target")

    def __init__(self, kernel: Kernel, target: Target | None) -> None:
        self.kernel, self.target = kernel, target
        self.block: tuple[int, ...] | None = None
        self.lds_bytes = 0
        self.checked: set[str] = set()
        self.passed: set[tuple[Value, Block | None]] = set()

    def check_kernel(self) -> None:
        """Checks the block size and the atoms among the arguments."""
        size = self.kernel.attrs.get("known_block_size")
        if size is not None:
            good = isinstance(size, (tuple, list)) and len(size) == 3 and all(type(n) is int and n > 0 for n in size)
            if not good:
                raise VerifyError(
                    f"known_block_size {size!r}", self.kernel.loc, "give three positive integers: x, y, z"
                )
            self.block = tuple(size)
            most = 1024 if self.target is None else self.target.chip.max_workgroup_size
            if self.threads() > most:
                what = f"a workgroup has at most {most} threads, {self._block_text()}"
                raise VerifyError(what, self.kernel.loc, f"use blocks of at most {most} threads")
        for v in self.kernel.args:
            if isinstance(v.type, _ATOM_TYPES):
                self.check_type(v.type)

    def threads(self) -> int:
        """Threads in a block of known size."""
        x, y, z = self.block or (0, 0, 0)
        return x * y * z

    def _block_text(self) -> str:
        total, dims = self.threads(), [n for n in self.block or () if n != 1]
        product = f"{'x'.join(map(str, dims))} = {total}" if len(dims) > 1 else str(total)
        return f"the block of @{self.kernel.name} has {product}"

    def check(self, op: Op) -> None:
        """Checks one operation that makes, changes or calls an atom, or allocates LDS."""
        rule = RULES.get(op.name)
        if rule is not None:
            rule(self, op)

    # --- atoms -----------------------------------------------------------------------------------

    def check_type(self, type_: t.Type) -> None:
        """Checks an atom type against the target and the block size, once for each type."""
        if type_.text in self.checked or not isinstance(type_, _ATOM_TYPES):
            return
        self.checked.add(type_.text)
        payload: Any = payload_of(type_)
        if self.target is not None:
            payload.check_target(self.target)
        if self.block is not None:
            self._check_threads(type_, payload)

    def _check_threads(self, type_: t.Type, payload: Any) -> None:
        from ..layout import size

        lanes, threads = _lanes(type_), self.threads()
        if not isinstance(lanes, int):
            return
        if threads % lanes:
            raise VerifyError(
                f"{payload} works on {lanes} lanes together, {self._block_text()}",
                fix=f"use a block size that is a multiple of {lanes}",
            )
        if isinstance(type_, t.TiledMmaType):
            need = lanes * int(size(type_.atom_layout))
        elif isinstance(type_, t.TiledCopyType):
            need = int(size(type_.layout_tv.shape[0]))
        else:
            return
        if need > threads:
            kind = "mma" if isinstance(type_, t.TiledMmaType) else "copy"
            raise VerifyError(
                f"a tiled {kind} of {payload} needs {need} threads, {self._block_text()}",
                fix=f"launch at least {need} threads in a block, or tile it over fewer",
            )

    def _make(self, op: Op) -> None:
        self.check_type(op.results[0].type)

    def _set_value(self, op: Op) -> None:
        state, name = _state(op.operands[0]), str(op.attrs["field"])
        if state is not None and state.field(name).constant:
            state.check_constant(name, op.operands[1].static_value())

    def _call(self, op: Op) -> None:
        key = (op.operands[0], op.parent)
        if key not in self.passed:
            self._check_state(op.operands[0])
            self.passed.add(key)

    def _check_state(self, atom: Value) -> None:
        state = _state(atom)
        if state is None:
            return
        fields = _fields_set(atom)
        if fields is not None:
            state.check_set([1 if f.name in fields else f.default for f in state])

    def _mma(self, op: Op) -> None:
        if (op.operands[0], op.parent) in self.passed:
            return
        self._call(op)
        if _lanes(op.operands[0].type) == 1:
            return
        block = op.parent
        while block is not None and block.parent is not None:
            outer = block.parent
            if outer.name == "scf.if" and self._splits_a_wave(outer.operands[0]):
                raise op.fail(
                    f"all lanes of a wave must reach it, but the if at {outer.loc} splits one by its thread id",
                    "make the condition the same for all lanes of a wave, or guard the copies instead",
                )
            block = outer.parent

    def _splits_a_wave(self, cond: Value) -> bool:
        """Whether a comparison of a thread or lane id with a constant certainly differs inside a wave."""
        op = cond.op
        if op is None or op.name != "arith.cmpi" or self.target is None:
            return False
        predicate, (a, b) = op.attrs["predicate"], op.operands
        limit, bound = b.static_value(), self._ids(a)
        if bound is None:
            predicate = predicate[:-2] + _SWAPPED.get(predicate[-2:], predicate[-2:])
            limit, bound = a.static_value(), self._ids(b)
        if limit is None or bound is None:
            return False
        holds, wave = _COMPARE[predicate], self.target.wave_size
        for first in range(0, bound, wave):
            if len({holds(i, limit) for i in range(first, min(first + wave, bound))}) > 1:
                return True
        return False

    def _ids(self, v: Value) -> int | None:
        """How many ids a thread or lane id runs through where consecutive ids are consecutive lanes."""
        op, wave = v.op, self.target.wave_size if self.target is not None else 0
        if op is None:
            return None
        if op.name == "gpu.lane_id":
            return wave
        if op.name != "gpu.thread_id" or op.attrs.get("dimension") != "x" or self.block is None:
            return None
        x, y, z = self.block
        return x if y * z == 1 or x % wave == 0 else None

    # --- LDS -------------------------------------------------------------------------------------

    def _make_ptr(self, op: Op) -> None:
        if self.target is None or op.attrs.get("allocBytes") is None:
            return
        align = op.attrs["allocAlign"]
        self.lds_bytes = (self.lds_bytes + align - 1) // align * align + op.attrs["allocBytes"]
        if self.lds_bytes > self.target.lds_bytes:
            raise op.fail(
                f"@{self.kernel.name} allocates {self.lds_bytes} bytes of LDS with this one",
                f"a workgroup on {self.target.processor} has {self.target.lds_bytes} bytes",
            )


def _lanes(atom: t.Type) -> object:
    """How many lanes work together in a call of an atom."""
    from ..layout import size

    payload: Any = payload_of(atom)
    return size(payload.thr_layout)


def _state(atom: Value) -> Any:
    """The state struct of an atom's operation, ``None`` for one without state."""
    return getattr(payload_of(atom.type), "state", None)


def _fields_set(atom: Value) -> set[str] | None:
    """The fields set since the atom was made; ``None`` for one that comes through control flow or an argument."""
    fields: set[str] = set()
    op = atom.op
    while op is not None:
        if op.name in ("fly.make_copy_atom", "fly.make_mma_atom"):
            return fields
        if op.name == "fly.atom.set_value":
            fields.add(str(op.attrs["field"]))
        elif op.name not in ("fly.make_tiled_copy", "fly.make_tiled_mma"):
            return None
        op = op.operands[0].op
    return None


RULES: dict[str, Callable[[AtomRules, Op], None]] = {
    "fly.static": AtomRules._make,
    "fly.make_copy_atom": AtomRules._make,
    "fly.make_mma_atom": AtomRules._make,
    "fly.make_tiled_copy": AtomRules._make,
    "fly.make_tiled_mma": AtomRules._make,
    "fly.atom.set_value": AtomRules._set_value,
    "fly.copy": AtomRules._call,
    "fly.copy_atom_call": AtomRules._call,
    "fly.copy_atom_call_ssa": AtomRules._call,
    "fly.gemm": AtomRules._mma,
    "fly.mma_atom_call": AtomRules._mma,
    "fly.mma_atom_call_ssa": AtomRules._mma,
    "fly.make_ptr": AtomRules._make_ptr,
}
