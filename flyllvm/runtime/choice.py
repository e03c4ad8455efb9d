"""Where launches go: ``FLYLLVM_DEVICE`` is ``auto``, ``hip`` or ``sim``."""

from __future__ import annotations

import os

from ..errors import LaunchError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..target import Target
    from .device import Device

CHOICES = ("auto", "hip", "sim")


def requested() -> str:
    """The value of ``FLYLLVM_DEVICE``, ``auto`` by default.

    Raises:
        LaunchError: It is none of the three.
    """
    value = os.environ.get("FLYLLVM_DEVICE", "auto")
    if value not in CHOICES:
        raise LaunchError(f"FLYLLVM_DEVICE={value!r}", fix=f"use one of: {', '.join(CHOICES)}")
    return value


def find_device(target: Target) -> Device | None:
    """The first GPU that runs code for a target; ``None`` where launches go to the simulator.

    Raises:
        LaunchError: ``FLYLLVM_DEVICE=hip``, and there is no such GPU.
    """
    choice = requested()
    if choice == "sim":
        return None
    from .hip import unavailable

    why = unavailable()
    if why is None:
        from ..codeobject import mismatch
        from .device import devices

        reasons = []
        for found in devices():
            reason = mismatch(target, found.target_id)
            if reason is None:
                return found
            reasons.append(f"device {found.index}: {reason}")
        why = f"no visible GPU runs code for {target} ({'; '.join(reasons)})"
    if choice == "hip":
        raise LaunchError(f"FLYLLVM_DEVICE=hip: {why}", fix="set FLYLLVM_DEVICE=sim to run in the simulator")
    return None
