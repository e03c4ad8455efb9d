"""Which checkers run."""

from __future__ import annotations

from ..errors import SimError


class Checks:
    """Switches of the checkers; bounds, barriers and division by zero are always checked.

    Attributes:
        poison: Poison or undef that reaches a store, an address or a branch.
        lds: LDS races, and reads of LDS or private memory that was never written.
        alignment: Accesses that break the alignment their instruction promises.
        global_races: Races on global memory between workgroups and waves.
        overflow: Wrapping under nuw / nsw, and addresses that wrapped in 32 bits.
        uniformity: readfirstlane of differing values, descriptors that differ between lanes (warnings).
        operands: Matrix operands whose rows disagree on the contraction index (warnings).
    """

    __slots__ = ("alignment", "global_races", "lds", "operands", "overflow", "poison", "uniformity")

    def __init__(self, *, default: bool, extra: bool) -> None:
        self.poison = self.lds = self.alignment = default
        self.global_races = self.overflow = self.uniformity = self.operands = extra


DEFAULT_CHECKS = Checks(default=True, extra=False)
_LEVELS = {
    "none": Checks(default=False, extra=False),
    "default": DEFAULT_CHECKS,
    "all": Checks(default=True, extra=True),
}


def level(name: str) -> Checks:
    """The checkers of a level: ``none``, ``default`` or ``all``.

    Raises:
        SimError: Unknown level.
    """
    if name not in _LEVELS:
        raise SimError(f"unknown checks {name!r}", fix=f"use one of: {', '.join(_LEVELS)}")
    return _LEVELS[name]
