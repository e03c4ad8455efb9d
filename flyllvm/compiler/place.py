"""Where launches go: the current GPU, or the simulator."""

from __future__ import annotations

import os
import sys

from ..errors import LaunchError, TargetError
from ..target import Target

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..runtime import Device

_PLACES: dict[tuple[Any, ...], Place] = {}
#: Number of devices by HIP library.
_COUNTS: dict[Any, int] = {}
#: Most workgroups of a launch in x, y, z, as AMD's devices report them; a GPU's own limits are asked for.
_MAX_GRID = ((1 << 31) - 1, 65536, 65536)


class Place:
    """The simulator, or a GPU.

    Attributes:
        target: What kernels are compiled for.
        device: The GPU, or ``None`` for the simulator.
    """

    __slots__ = ("device", "target")

    def __init__(self, target: Target, device: Device | None) -> None:
        self.target, self.device = target, device

    @property
    def on_gpu(self) -> bool:
        """Whether launches go to a GPU."""
        return self.device is not None

    def check_array(self, name: str, where: str, what: str, device: int | None = None) -> None:
        """Refuses host memory or another device's on a GPU, and device memory in the simulator.

        Raises:
            LaunchError: With the way out.
        """
        if where == "host" and self.on_gpu:
            raise LaunchError(
                f"argument {name}: {what} is in host memory, and the launch goes to {self}",
                fix="copy it with flyllvm.runtime.DeviceArray.from_numpy(a), or set FLYLLVM_DEVICE=sim",
            )
        if where == "device" and not self.on_gpu:
            raise LaunchError(
                f"argument {name}: {what} is in device memory, and the launch goes to the simulator",
                fix="pass a NumPy array, or set FLYLLVM_DEVICE=hip",
            )
        if device is not None and self.device is not None and device != self.device.index:
            raise LaunchError(
                f"argument {name}: {what} is on device {device}, and the launch goes to {self}",
                fix="make that device the current one, or copy the array",
            )

    @property
    def max_grid(self) -> tuple[int, int, int]:
        """Most workgroups of a launch in x, y, z."""
        return _MAX_GRID if self.device is None else self.device.max_grid

    def __str__(self) -> str:
        return "the simulator" if self.device is None else f"device {self.device.index} ({self.device.name})"


def current_place(arch: str | Target | None = None) -> Place:
    """Where a launch goes now.

    ``FLYLLVM_DEVICE`` is ``auto`` (a GPU if there is one), ``hip`` or ``sim``.  The simulator plays ``arch``, or the
    chip named in ``FLYLLVM_ARCH``.

    Raises:
        LaunchError: ``FLYLLVM_DEVICE`` has another value, or is ``hip`` and there is no such GPU.
        TargetError: The simulator is not told which chip to play.
    """
    get = os.environ.get
    runtime = sys.modules.get("flyllvm.runtime.hip")
    opened = getattr(runtime, "_opened", None)
    key = (get("FLYLLVM_DEVICE"), get("FLYLLVM_ARCH"), str(arch), opened)
    place = _PLACES.get(key)
    if place is None:
        place = _find(arch)
        opened = getattr(sys.modules.get("flyllvm.runtime.hip"), "_opened", None)
        if opened is not None or not place.on_gpu:
            _PLACES[(*key[:3], opened)] = place
    if place.device is not None:
        return _on_current_device(place)
    return place


def _on_current_device(place: Place) -> Place:
    """The place on the device that this thread uses now, where there are several."""
    from ..runtime import Device, devices
    from ..runtime.hip import hip

    opened = hip()
    count = _COUNTS.get(opened)
    if count is None:
        count = _COUNTS[opened] = len(devices())
    if count < 2 or place.device is None:
        return place
    now = Device.current()
    if now.index == place.device.index or now.target_id.processor != place.target.processor:
        return place
    key = (now.index, place.target, opened)
    return _PLACES.setdefault(key, Place(place.target, now))


def _find(arch: str | Target | None) -> Place:
    from ..runtime.choice import find_device, requested

    if requested() == "sim":
        return Place(_simulated(arch), None)
    if arch is not None:
        target = Target.parse(arch)
        return Place(target, find_device(target))
    from ..runtime.hip import unavailable

    why = unavailable()
    if why is None:
        from ..runtime import Device

        device = Device.current()
        return Place(Target.parse(str(device.target_id)), device)
    if requested() == "hip":
        raise LaunchError(f"FLYLLVM_DEVICE=hip: {why}", fix="set FLYLLVM_DEVICE=sim to run in the simulator")
    return Place(_simulated(arch), None)


def _simulated(arch: str | Target | None) -> Target:
    named = arch if arch is not None else os.environ.get("FLYLLVM_ARCH")
    if not named:
        raise TargetError(
            "a launch in the simulator, which is not told what chip to play",
            fix="set FLYLLVM_ARCH=gfx942, or give @flyc.jit(arch=...) or launch(arch=...)",
        )
    return Target.parse(named)


def forget() -> None:
    """Looks for GPUs anew at the next launch."""
    _PLACES.clear()
    _COUNTS.clear()
