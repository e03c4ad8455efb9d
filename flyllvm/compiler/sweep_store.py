"""The results file of a sweep: one JSON line per trial, written as soon as it is there."""

from __future__ import annotations

import json
import os

from ..codeobject.files import read_text
from ..errors import CodegenError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..target import Target
    from .kernel import KernelFunction
    from .sweep import Trial


def trial_key(kernel: KernelFunction, specs: tuple[Any, ...], target: Target, config: dict[str, Any]) -> str | None:
    """What a trial's facts depend on, as one word; ``None`` where the kernel reads what has no value."""
    from _blake2 import blake2b

    from .cache import identity
    from .cache.world import Unknown, World

    try:
        world = World(
            kernel.fn, kernel.name, dict(kernel.options), [str(s) for s in specs], dict(sorted(config.items()))
        )
    except Unknown:
        return None
    words = (world.sum, identity.own_files(), str(identity.llvm()), str(target), str(target.wave_size))
    return blake2b("\n".join(words).encode(), digest_size=20).hexdigest()


class ResultsFile:
    """The file.

    Raises:
        CodegenError: It is there, and is no results file.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        self._rows: dict[str, dict[str, Any]] = {}
        try:
            lines = read_text(self.path, "a results file").split("\n")
        except FileNotFoundError:
            return
        # The last line is empty, or what was being written when the sweep was ended.
        for number, line in enumerate(lines[:-1], 1):
            try:
                row = json.loads(line)
                if row["key"]:
                    self._rows[row["key"]] = {"facts": row["facts"], "error": row["error"]}
            except (ValueError, KeyError, TypeError):
                raise CodegenError(
                    "not a results file of a sweep", f"{self.path}:{number}", "give another file, or remove this one"
                ) from None
        if lines[-1]:
            with open(self.path, "r+b") as raw:
                raw.truncate(len("\n".join(lines[:-1]).encode()) + (1 if len(lines) > 1 else 0))

    def get(self, key: str) -> dict[str, Any] | None:
        """The row of a key."""
        return self._rows.get(key)

    def add(self, key: str | None, trial: Trial) -> None:
        """Appends a trial; one without a key is kept for reading, not for resuming."""
        row: dict[str, Any] = {
            "key": key or f"none {len(self._rows)}",
            "config": {k: repr(v) for k, v in trial.config.items()},
        }
        row |= {"facts": trial.facts, "error": trial.error}
        with open(self.path, "a", encoding="utf-8") as f:
            f.write(json.dumps(row) + "\n")
        if key is not None:
            self._rows[key] = {"facts": trial.facts, "error": trial.error}
