"""The list of smoke tests for a target."""

from __future__ import annotations

from functools import partial

from .basic import BASIC
from .copies import copy_atoms, copy_case
from .matrix import matrix_atoms, matrix_case

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from ...target import Target
    from .case import Case


def cases(target: Target) -> list[tuple[str, Callable[[], Case]]]:
    """Names of the smoke tests in order of difficulty, each with the function that makes it."""
    found: list[tuple[str, Callable[[], Case]]] = []
    for name, make in BASIC.items():
        found.append((name, partial(make, target)))
    for copy in copy_atoms(target):
        found.append((copy.name, partial(copy_case, target, copy)))
    for row in matrix_atoms(target):
        found.append((row.name, partial(matrix_case, target, row)))
    return found
