"""Cache policy of buffer accesses: names per chip family instead of raw bits.

A policy is a number (the raw bits) or names joined with ``|``: ``nt``, ``sc0|nt``, ``nt|scope_dev``.  Which names exist
and which bits they are depends on the chip, so a policy is resolved when it is emitted.

Source: LLVM AMDGPUUsage, memory model (cache bits of each generation); each value was compared with what LLVM 22.1
prints for it.  Bits that LLVM drops in silence (8, 32, ... on gfx942) are refused here.
"""

from __future__ import annotations

from ...errors import AtomError, ParseError
from ..copy_op import CopyAtomOp

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import ClassVar

    from ...target import Target

_FLAGS = {1: {"glc": 1}, 2: {"slc": 2}}
_TEMPORAL = {"nt": 1, "ht": 2, "lu": 3, "wb": 3, "nt_rt": 4, "rt_nt": 5, "nt_ht": 6, "nt_wb": 7}
_SCOPE = {"scope_se": 8, "scope_dev": 16, "scope_sys": 24}
# Per family: mask of a field to the names of its values.  Two names of one field exclude each other.
_FIELDS: dict[str, dict[int, dict[str, int]]] = {
    "cdna2": {**_FLAGS, 16: {"scc": 16}},
    "cdna3": {1: {"sc0": 1}, 2: {"nt": 2}, 16: {"sc1": 16}},
    "cdna4": {1: {"sc0": 1}, 2: {"nt": 2}, 16: {"sc1": 16}},
    "rdna3": {**_FLAGS, 4: {"dlc": 4}},
    "rdna4": {7: _TEMPORAL, 24: _SCOPE},
    "gfx1250": {7: _TEMPORAL, 24: _SCOPE, 32: {"nv": 32}},
}
_LOAD_ONLY = {"lu"}  # last use
_STORE_ONLY = {"wb", "nt_wb"}  # write back
_RESERVED_FOR_LOADS = 7  # temporal hint


class CachePolicy:
    """Raw bits or names, not yet bound to a chip.

    Args:
        value: A number, a name, or names joined with ``|``; 0 is the default policy.

    Raises:
        ParseError: Neither a number nor names.
    """

    __slots__ = ("text",)

    def __init__(self, value: int | str) -> None:
        if isinstance(value, bool) or not isinstance(value, (int, str)):
            raise ParseError(f"cache policy {value!r:.60}", fix="write a number, or names such as nt or sc0|nt")
        words = [word.strip() for word in str(value).split("|")]
        is_number = len(words) == 1 and words[0].isdigit()
        if not is_number and not all(word.isidentifier() for word in words):
            raise ParseError(f"cache policy {value!r}", fix="write a number, or names such as nt or sc0|nt")
        self.text = "|".join(words)

    @property
    def is_default(self) -> bool:
        """Whether nothing is asked for."""
        return self.text == "0"

    def bits(self, target: Target, is_store: bool | None) -> int:
        """The bits on a target.

        Args:
            target: The chip.
            is_store: Direction; ``None`` where it is not known yet, so that either will do.

        Raises:
            AtomError: The chip has no such name or bit, or not in this direction.
        """
        fields = _FIELDS.get(target.chip.family, {})
        if self.text.isdigit():
            return self._checked_number(int(self.text), fields, target, is_store)
        bits = used = 0
        for word in self.text.split("|"):
            mask = next((mask for mask, names in fields.items() if word in names), 0)
            if not mask or used & mask:
                reason = "sets one field twice" if mask else f"has no meaning on {target.processor}"
                raise AtomError(f"cache policy {self.text}: {word} {reason}", fix=_legal(target, fields))
            if (is_store and word in _LOAD_ONLY) or (is_store is False and word in _STORE_ONLY):
                direction = "store" if is_store else "load"
                raise AtomError(
                    f"cache policy {self.text}: {word} is not for a {direction}", fix=_legal(target, fields)
                )
            used |= mask
            bits |= fields[mask][word]
        return bits

    def _checked_number(
        self, bits: int, fields: dict[int, dict[str, int]], target: Target, is_store: bool | None
    ) -> int:
        defined = sum(fields)
        if bits & ~defined:
            raise AtomError(
                f"cache policy {bits}: bits {bits & ~defined} have no meaning on {target.processor}",
                fix=_legal(target, fields),
            )
        if 7 in fields and bits & 7 == _RESERVED_FOR_LOADS and is_store is False:
            raise AtomError(f"cache policy {bits}: hint 7 is for stores only", fix=_legal(target, fields))
        return bits


class CachedCopy(CopyAtomOp):
    """A copy with a cache policy; stands before the base class that says whether it has state.

    Attributes:
        cache: Cache policy: raw bits or names.
        stores: Direction, as of `CachePolicy.bits`; ``None`` where the operands decide.
    """

    __slots__ = ()

    cache: CachePolicy
    stores: ClassVar[bool | None] = None

    def check_target(self, target: Target) -> None:
        """Checks that the target has the instruction and that the cache policy means something there.

        Raises:
            TargetError: The target lacks the instruction, or this width of it.
            AtomError: The cache policy has no meaning there.
        """
        super().check_target(target)
        self.cache.bits(target, self.stores)


def names(target: Target) -> dict[str, int]:
    """The names of a target and their bits."""
    return {name: bit for field in _FIELDS.get(target.chip.family, {}).values() for name, bit in field.items()}


def _legal(target: Target, fields: dict[int, dict[str, int]]) -> str:
    groups = " | ".join("/".join(f"{name} ({bit})" for name, bit in names.items()) for names in fields.values())
    return f"cache policy of {target.processor}: {groups or 'none'}"
