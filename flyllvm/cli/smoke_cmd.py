"""``flyllvm smoke``: does the GPU of this machine do what the simulator says?

Status 1 where a test differs or fails, 2 where there is no GPU (0 with ``--allow-no-device``).
"""

from __future__ import annotations

import os
import sys

from ..errors import FlyError
from ..target import Target

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

    from ..kernels.smoke import Outcome
    from ..runtime import Device

_DEFAULT_ARCH = "gfx942"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments."""
    parser.add_argument("--only", metavar="TEXT", default="", help="run only the tests whose name holds TEXT")
    parser.add_argument("--dry-run", action="store_true", help="compile everything and run nothing; needs no GPU")
    parser.add_argument(
        "--arch", metavar="TARGET", help="what --dry-run compiles for (default: FLYLLVM_ARCH, or gfx942)"
    )
    parser.add_argument("--allow-no-device", action="store_true", help="end with status 0 where there is no GPU")
    parser.add_argument("--json", action="store_true", help="print one JSON object; it can be kept as a record")


def run(ns: argparse.Namespace) -> int:
    """Runs the tests on every GPU and prints a table.

    Raises:
        FlyError: No test has such a name, or the target or GPU is unknown.
    """
    if ns.dry_run:
        arch = ns.arch or os.environ.get("FLYLLVM_ARCH") or _DEFAULT_ARCH
        return _report([_Run(None, Target.parse(arch), ns)], ns.json)
    if ns.arch:
        raise FlyError(f"--arch {ns.arch} without --dry-run", fix="the GPU decides what is compiled; add --dry-run")
    from ..runtime import unavailable

    why = unavailable()
    if why is not None:
        return _no_device(why, ns)
    from ..runtime import devices

    return _report([_Run(d, Target.parse(str(d.target_id)), ns) for d in devices()], ns.json)


class _Run:
    """All tests on one GPU, or compiled for one target."""

    def __init__(self, device: Device | None, target: Target, ns: argparse.Namespace) -> None:
        from ..kernels.smoke import cases

        self.device = device
        self.target = target
        chosen = [(name, make) for name, make in cases(target) if ns.only in name]
        if not chosen:
            raise FlyError(
                f"no smoke test of {target} has {ns.only!r} in its name", fix="flyllvm smoke --dry-run lists all"
            )
        if device is not None:
            device.use()
        self.outcomes = []
        width = max(len(name) for name, _ in chosen)
        for name, make in chosen:
            outcome = _attempt(name, make, device is not None)
            self.outcomes.append(outcome)
            if not ns.json:
                if len(self.outcomes) == 1:
                    print(self.title())
                print(_line(outcome, width), flush=True)

    def title(self) -> str:
        """What runs where."""
        return f"{self.target}, compiled only" if self.device is None else f"{self.device.name}, {self.target}"

    @property
    def good(self) -> bool:
        """Whether every test passed."""
        return all(o.good for o in self.outcomes)

    def to_dict(self) -> dict[str, object]:
        """The run as plain data."""
        return {
            "device": None if self.device is None else self.device.name,
            "target": str(self.target),
            "tests": [o.to_dict() for o in self.outcomes],
        }


def _attempt(name: str, make: object, on_device: bool) -> Outcome:
    from ..kernels.smoke import Outcome, run_case

    try:
        case = make()  # type: ignore[operator]
    except FlyError as error:
        return Outcome(name, "", "error", str(error))
    return run_case(case, on_device=on_device)


def _line(outcome: Outcome, width: int) -> str:
    took = "" if outcome.device_ms is None else f"{outcome.device_ms:9.3f} ms"
    text = f"  {outcome.name:{width}}  {outcome.status:9}{took}".rstrip()
    return text if not outcome.detail else f"{text}\n    {outcome.detail}"


def _report(runs: list[_Run], json: bool) -> int:
    good = all(run.good for run in runs)
    if json:
        from json import dumps

        from .. import __version__

        print(dumps({"flyllvm": __version__, "good": good, "runs": [run.to_dict() for run in runs]}))
    else:
        bad = [o.name for run in runs for o in run.outcomes if not o.good]
        total = sum(len(run.outcomes) for run in runs)
        print(f"all {total} tests passed" if good else f"{len(bad)} of {total} tests failed: {', '.join(bad)}")
    return 0 if good else 1


def _no_device(why: str, ns: argparse.Namespace) -> int:
    if not ns.allow_no_device:
        raise FlyError(f"no GPU to test: {why}", fix="--dry-run compiles the tests, --allow-no-device accepts this")
    if ns.json:
        from json import dumps

        from .. import __version__

        print(dumps({"flyllvm": __version__, "good": True, "runs": [], "no_device": why}))
    else:
        print(f"no GPU to test: {why}", file=sys.stderr)
    return 0
