"""Runs a smoke test on the device and in the simulator, and compares."""

from __future__ import annotations

import numpy as np

from ...errors import FlyError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .case import Case


class Outcome:
    """What came of one smoke test.

    Attributes:
        name: Name of the test.
        group: Its group.
        status: ``same``, ``different``, ``compiled`` (not run) or ``error``.
        detail: The first difference, or the error; empty where all is well.
        device_ms: Time on the device by events, in milliseconds; ``None`` where it did not run.
    """

    __slots__ = ("detail", "device_ms", "group", "name", "status")

    def __init__(self, name: str, group: str, status: str, detail: str = "", device_ms: float | None = None) -> None:
        self.name = name
        self.group = group
        self.status = status
        self.detail = detail
        self.device_ms = device_ms

    @property
    def good(self) -> bool:
        """Whether nothing is wrong."""
        return self.status in ("same", "compiled")

    def to_dict(self) -> dict[str, object]:
        """The fields as plain data."""
        return {name: getattr(self, name) for name in ("name", "group", "status", "detail", "device_ms")}


def run_case(case: Case, *, on_device: bool) -> Outcome:
    """Compiles a smoke test; with ``on_device`` runs it on the current GPU and compares with the simulator."""
    try:
        code = case.compile()
        if not on_device:
            return Outcome(case.name, case.group, "compiled")
        got, device_ms = _on_device(case, code)
        expected = _simulated(case)
    except FlyError as error:
        return Outcome(case.name, case.group, "error", str(error))
    for position in case.outputs:
        detail = difference(expected[position], got[position])
        if detail:
            where = f"argument {position}: {detail}"
            return Outcome(case.name, case.group, "different", where, device_ms)
    return Outcome(case.name, case.group, "same", "", device_ms)


def difference(expected: Any, got: Any) -> str:
    """The first place where two arrays differ in their bytes, in words; empty where there is none."""
    size = expected.dtype.itemsize
    a, b = (np.ascontiguousarray(x).reshape(-1).view(np.uint8).reshape(-1, size) for x in (expected, got))
    wrong = np.flatnonzero((a != b).any(axis=1))
    if not wrong.size:
        return ""
    place = tuple(int(i) for i in np.unravel_index(wrong[0], expected.shape))
    return (
        f"{wrong.size} of {expected.size} elements differ, the first at {place}: "
        f"{got[place]} on the device, {expected[place]} in the simulator"
    )


def _simulated(case: Case) -> list[Any]:
    from ...sim import simulate

    args = case.fresh_args()
    simulate(
        case.llvm_ir,
        "smoke",
        grid=case.grid,
        block=case.block,
        args=args,
        target=str(case.target),
        wave_size=case.target.wave_size,
    )
    return args


def _on_device(case: Case, code: Any) -> tuple[list[Any], float]:
    from ...runtime import DeviceArray, Event, LoadedModule, Stream

    args = case.fresh_args()
    with LoadedModule(code) as module, Stream() as stream, Event() as start, Event() as end:
        arrays = [DeviceArray.from_numpy(a) if isinstance(a, np.ndarray) else a for a in args]
        try:
            start.record(stream)
            module.function("smoke").launch(case.grid, case.block, arrays, stream=stream)
            end.record(stream)
            stream.synchronize()
            for position in case.outputs:
                args[position] = arrays[position].numpy()
            return args, end.elapsed_ms(start)
        finally:
            for array in arrays:
                if isinstance(array, DeviceArray):
                    array.free()
