"""Files read whole and written whole: nothing half-written is left behind."""

from __future__ import annotations

import os
import stat

from ..errors import FlyError, LinkError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    T = TypeVar("T")


#: Largest file that is read whole, in bytes; of a pipe or device, which has no size, less is read.
LARGEST_FILE, LARGEST_STREAM = 1 << 30, 1 << 28
#: Most bytes of a text: a kernel, a module of LLVM IR, a configuration.
LARGEST_TEXT = 1 << 26
_CHUNK = 1 << 20


def read_file(path: str | os.PathLike[str]) -> bytes:
    """The bytes of a file.

    Raises:
        LinkError: The file cannot be read, or is larger than any object file.
    """
    try:
        return read_bounded(path, LARGEST_FILE, LARGEST_STREAM, "pass an object file or code object")
    except OSError as error:
        raise LinkError(
            f"cannot read the file: {error.strerror or error}", os.fspath(path), "check the path and its permissions"
        ) from None


def read_text(path: str | os.PathLike[str], what: str) -> str:
    """The text of a UTF-8 file; one without an end, such as ``/dev/zero``, is left before it fills the memory.

    Args:
        path: The file.
        what: What it should be, for the message.

    Raises:
        LinkError: The file is larger than any such text.
        OSError: It cannot be read.
        UnicodeError: It is no UTF-8.
    """
    text = read_bounded(path, LARGEST_TEXT, LARGEST_TEXT, f"pass {what}").decode()
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def read_bounded(path: str | os.PathLike[str], largest: int, largest_stream: int, fix: str) -> bytes:
    """The bytes of a file, or of a pipe or device up to a limit.

    Raises:
        LinkError: There are more bytes than the limit.
        OSError: It cannot be read.
    """
    with open(path, "rb") as file:
        status = os.fstat(file.fileno())
        if stat.S_ISREG(status.st_mode):
            _check_size(path, status.st_size, largest, fix)
            return file.read(largest)
        parts, size = [], 0
        while part := file.read(_CHUNK):
            size += len(part)
            _check_size(path, size, largest_stream, fix)
            parts.append(part)
        return b"".join(parts)


def _check_size(path: str | os.PathLike[str], size: int, limit: int, fix: str) -> None:
    if size > limit:
        raise LinkError(f"more than {limit} bytes", os.fspath(path), fix)


def write_file(path: str | os.PathLike[str], data: bytes) -> None:
    """Writes a file through a temporary neighbour and a rename, so that readers see all of it or the old one.

    Raises:
        LinkError: The file cannot be written; what was there before is untouched.
    """
    # What a link names is written, not the link.
    final = os.path.realpath(os.fspath(path)) if os.path.islink(path) else os.fspath(path)
    if os.path.exists(final) and not os.path.isfile(final):
        # A pipe or /dev/stdout cannot be replaced by a rename.
        _write(final, data, "wb", final)
        return
    part = f"{final}.{os.getpid()}.{os.urandom(4).hex()}.part"
    try:
        _write(part, data, "xb", final)
        try:
            os.replace(part, final)
        except OSError as error:
            raise _refused(final, error) from None
    except BaseException:
        if os.path.exists(part):
            os.unlink(part)
        raise


def _write(path: str, data: bytes, mode: str, shown: str) -> None:
    try:
        with open(path, mode) as file:
            file.write(data)
    except OSError as error:
        raise _refused(shown, error) from None


def _refused(path: str, error: OSError) -> LinkError:
    return LinkError(
        f"cannot write the file: {error.strerror or error}", path, "check the directory, its permissions and free space"
    )


def named(path: str | os.PathLike[str], work: Callable[[], T]) -> T:
    """Runs `work` and puts the file's name in front of the place that an error names."""
    try:
        return work()
    except FlyError as error:
        name = os.fspath(path)
        if error.where is None:
            error.where = name
        elif str(error.where) != name:
            error.where = f"{name}: {error.where}"
        raise
