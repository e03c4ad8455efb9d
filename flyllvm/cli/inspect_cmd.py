"""``flyllvm inspect``: kernels, registers and arguments of a code object or object file."""

from __future__ import annotations

from ..codeobject import inspect
from ..codeobject.files import named, read_file


def run(path: str, *, json: bool) -> int:
    """Prints what the file holds.

    Raises:
        LinkError: The file cannot be read, or is no AMD GPU object.
    """
    info = named(path, lambda: inspect(read_file(path)))
    print(info.to_json() if json else info.render())
    return 0
