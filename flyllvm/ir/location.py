"""Author locations: where in the user's Python an operation was written, helpers included."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_AUTHORING = (os.path.join(_PACKAGE, "kernels") + os.sep,)


class Frame:
    """One line of the author's source.

    Attributes:
        file: Path as Python gave it; shortened only when debug information is written.
        line: 1-based line.
        col: 1-based column, 0 when unknown.
        func: Name of the function that holds the line.
        func_line: First line of that function.
    """

    __slots__ = ("col", "file", "func", "func_line", "line")

    def __init__(self, file: str, line: int, func: str, func_line: int = 0, col: int = 0) -> None:
        self.file, self.line, self.func, self.func_line, self.col = file, line, func, func_line, col

    def key(self) -> tuple[str, int, int, str, int]:
        """Fields as a hashable tuple."""
        return (self.file, self.line, self.col, self.func, self.func_line)


class Location:
    """A stack of frames, the innermost first; an outer frame is where the inner function was called."""

    __slots__ = ("frames",)

    def __init__(self, frames: tuple[Frame, ...]) -> None:
        self.frames = frames

    def __str__(self) -> str:
        if not self.frames:
            return "<unknown location>"
        head, *rest = self.frames
        text = f"{head.file}:{head.line}"
        for frame in rest:
            text += f" (called from {frame.file}:{frame.line})"
        return text

    def __repr__(self) -> str:
        return f"Location({self})"

    def key(self) -> tuple[tuple[str, int, int, str, int], ...]:
        """Frames as a hashable tuple."""
        return tuple(f.key() for f in self.frames)


UNKNOWN = Location(())
#: Ends the qualified name of code that was cut out of a function: a branch or loop body, shown as that function.
REGION_SUFFIX = ".<region>"
_COMPREHENSIONS = ("<listcomp>", "<setcomp>", "<dictcomp>")
#: Ids of code objects and lines -> the location, and the code objects: kept alive, so that no id is used twice.  Code
#: objects themselves are no keys: two of different files may be equal.
_CACHE: dict[tuple[int, ...], tuple[Location, list[Any]]] = {}
_CACHE_LIMIT = 16384
#: What `is_author_file` says, by file name: a traced operation asks for every frame of the stack.
_AUTHORS: dict[str, bool] = {}


def is_author_file(filename: str) -> bool:
    """True for code outside flyllvm, and for kernels that flyllvm ships."""
    return not filename.startswith(_PACKAGE) or filename.startswith(_AUTHORING)


def capture(stop: object | None = None, skip: int = 1) -> Location:
    """The author's location of the running call.

    Args:
        stop: Code object of the outermost author function (the kernel); frames above it are left out.
        skip: Frames to skip at the top of the stack.
    """
    places: list[Any] = []
    ids: list[int] = []
    frame = sys._getframe(skip)
    while frame is not None:
        code = frame.f_code
        name = code.co_filename
        authors = _AUTHORS.get(name)
        if authors is None:
            authors = _AUTHORS[name] = is_author_file(name)
        if authors:
            line = frame.f_lineno
            places += (code, line)
            ids += (id(code), line)
            if code is stop or len(ids) >= 32:
                break
        frame = frame.f_back  # type: ignore[assignment]
    key = tuple(ids)
    found = _CACHE.get(key)
    if found is None:
        if len(_CACHE) >= _CACHE_LIMIT:
            _CACHE.clear()
        found = _CACHE[key] = (Location(frames_of(places)), places)
    return found[0]


def frames_of(key: list[Any]) -> tuple[Frame, ...]:
    """Frames of (code, line, code, line, ...); parts of one function are one frame, at the innermost line."""
    out: list[Frame] = []
    inner: tuple[str, int] | None = None
    last = len(key) - 2
    for i in range(0, len(key), 2):
        code = key[i]
        place = inner or (code.co_filename, key[i + 1])
        part = code.co_qualname.endswith(REGION_SUFFIX) or code.co_name in _COMPREHENSIONS
        inner = place if part and i < last else None
        if inner is None:
            file, line = place
            out.append(Frame(file, line, code.co_name, code.co_firstlineno))
    return tuple(out)
