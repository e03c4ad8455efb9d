"""The cache directory: entries by key, written whole, checked when read, bounded in size.

Any number of threads and processes share it without locks: an entry is written beside its place and renamed, so that a
reader sees all of it or nothing; two writers of one key write the same contents.
"""

from __future__ import annotations

import os
import sys
import time

from .entry import Damaged, decode, encode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

#: Environment: the directory, its size limit in bytes, and ``0`` to do without a cache.
DIRECTORY_VARIABLE = "FLYLLVM_CACHE_DIR"
SIZE_VARIABLE = "FLYLLVM_CACHE_SIZE"
SWITCH_VARIABLE = "FLYLLVM_CACHE"
DEFAULT_SIZE_BYTES = 1 << 30
#: Kinds of entries: what a kernel's source became, what LLVM made of a module, sums of flyllvm's own files, and what
#: autotune chose.
KINDS = ("source", "image", "self", "tuned")
_FORMAT = "v1"
_SUFFIX = ".entry"
_PART = ".part"
_OFF = ("0", "off", "no", "false")
_STALE_PART_SECONDS = 3600
# A look at the whole directory costs about a microsecond an entry, so it is taken after this many entries written.
_STORES_PER_CHECK = 64


class _Quiet:
    """Lets errors of the operating system pass; ``contextlib`` is dear to import."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> bool:
        return kind is not None and issubclass(kind, OSError)


_quiet = _Quiet()


class Cache:
    """A cache directory.

    Args:
        directory: Where entries are; made, readable by its owner alone.
        size_limit_bytes: What its entries may take; the ones not used for the longest time go first.

    Attributes:
        why_off: Why nothing is read or written, or ``None``.
    """

    __slots__ = ("_stores", "directory", "root", "size_limit_bytes", "why_off")

    def __init__(self, directory: str, size_limit_bytes: int = DEFAULT_SIZE_BYTES) -> None:
        self.directory = directory
        self.root = os.path.join(directory, _FORMAT)
        self.size_limit_bytes = size_limit_bytes
        self._stores = os.getpid() % _STORES_PER_CHECK
        self.why_off = self._open()

    def _open(self) -> str | None:
        try:
            os.makedirs(self.directory, mode=0o700, exist_ok=True)
            with _quiet:
                os.mkdir(self.root, 0o700)
            info = os.stat(self.root)
        except OSError as e:
            return f"{self.root}: {e.strerror or e}"
        if hasattr(os, "geteuid"):
            # Whoever can write here decides what runs on the GPU.
            if info.st_uid != os.geteuid():
                return f"{self.root} belongs to another user"
            if info.st_mode & 0o022:
                return f"{self.root} can be written by other users (chmod 700 it)"
        return None

    # --- one entry --------------------------------------------------------------------------------

    def path(self, kind: str, key: str) -> str:
        """Where an entry is."""
        return os.path.join(self.root, f"{kind}-{key}{_SUFFIX}")

    def get(self, kind: str, key: str) -> tuple[dict[str, Any], dict[str, Any]] | None:
        """(facts, parts) of an entry; ``None`` where there is none, or a damaged one, which is removed."""
        if self.why_off is not None:
            return None
        path = self.path(kind, key)
        try:
            with open(path, "rb") as f:
                data = f.read()
        except OSError:
            return None
        try:
            facts, parts = decode(data)
            if facts.get("key") != key or facts.get("kind") != kind:
                raise Damaged
        except Damaged:
            with _quiet:
                os.unlink(path)
            return None
        with _quiet:
            os.utime(path)
        return facts, parts

    def put(self, kind: str, key: str, facts: Mapping[str, Any], parts: Mapping[str, bytes | str]) -> None:
        """Writes an entry; a full or read-only disk leaves the cache as it was."""
        if self.why_off is not None:
            return
        data = encode({**facts, "key": key, "kind": kind}, parts)
        path = self.path(kind, key)
        part = f"{path}.{os.getpid()}.{os.urandom(6).hex()}{_PART}"
        try:
            fd = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)
            with open(fd, "wb") as f:
                f.write(data)
            os.replace(part, path)
        except OSError:
            with _quiet:
                os.unlink(part)
            return
        self._stores += 1
        if self._stores % _STORES_PER_CHECK == 0:
            self.prune()

    # --- all entries ------------------------------------------------------------------------------

    def files(self) -> Iterator[tuple[str, str, os.stat_result]]:
        """(kind, path, stat) of every entry."""
        try:
            with os.scandir(self.root) as items:
                found = list(items)
        except OSError:
            return
        for item in found:
            kind = item.name.partition("-")[0]
            if kind in KINDS and item.name.endswith(_SUFFIX):
                with _quiet:
                    yield kind, item.path, item.stat(follow_symlinks=False)

    def total_bytes(self) -> int:
        """Size of all entries, in bytes."""
        return sum(info.st_size for _, _, info in self.files())

    def prune(self, size_limit_bytes: int | None = None, older_than_seconds: float | None = None) -> tuple[int, int]:
        """Removes the entries not used for the longest time until a tenth of the limit is free again.

        Args:
            size_limit_bytes: The limit; by default the cache's own.
            older_than_seconds: Also removes what was not used for this long.

        Returns:
            (entries, bytes) removed.
        """
        limit = self.size_limit_bytes if size_limit_bytes is None else size_limit_bytes
        self._remove_parts()
        entries = sorted(self.files(), key=lambda e: e[2].st_mtime_ns)
        total = sum(info.st_size for _, _, info in entries)
        goal = limit if total <= limit else limit - limit // 10
        now, count, freed = time.time(), 0, 0
        for _, path, info in entries:
            old = older_than_seconds is not None and now - info.st_mtime > older_than_seconds
            if total - freed <= goal and not old:
                if older_than_seconds is None:
                    break
                continue
            with _quiet:
                os.unlink(path)
                count += 1
                freed += info.st_size
        return count, freed

    def clear(self) -> tuple[int, int]:
        """Removes every entry; returns (entries, bytes)."""
        return self.prune(0)

    def _remove_parts(self) -> None:
        """Removes what writers that died have left."""
        with _quiet, os.scandir(self.root) as items:
            for item in items:
                if item.name.endswith(_PART):
                    with _quiet:
                        if time.time() - item.stat().st_mtime > _STALE_PART_SECONDS:
                            os.unlink(item.path)


def default_directory() -> str:
    """``FLYLLVM_CACHE_DIR``, else ``flyllvm`` in the user's cache directory."""
    named = os.environ.get(DIRECTORY_VARIABLE)
    if named:
        return os.path.abspath(os.path.expanduser(named))
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or os.path.expanduser("~\\AppData\\Local")
    elif sys.platform == "darwin":
        base = os.path.expanduser("~/Library/Caches")
    else:
        base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.path.join(base, "flyllvm")


def size_limit() -> int:
    """``FLYLLVM_CACHE_SIZE`` in bytes (K, M and G are powers of 1024), else 1 GiB.

    Raises:
        CodegenError: It is no size.
    """
    text = os.environ.get(SIZE_VARIABLE, "").strip()
    return parse_size(text, SIZE_VARIABLE) if text else DEFAULT_SIZE_BYTES


def parse_size(text: str, what: str) -> int:
    """A number of bytes from ``512M``.

    Raises:
        CodegenError: It is no size.
    """
    from ...errors import CodegenError

    scale = {"K": 10, "M": 20, "G": 30}.get(text[-1:].upper(), 0)
    digits = text[:-1] if scale else text
    if not digits.isdecimal():
        raise CodegenError(f"{what}={text!r} is no size", fix="write bytes, or K, M, G after a number: 512M")
    return int(digits) << scale


_OPEN: dict[tuple[str, int], Cache] = {}


def open_cache() -> Cache | None:
    """The cache that the environment asks for; ``None`` where it is switched off or cannot be used."""
    if os.environ.get(SWITCH_VARIABLE, "").strip().lower() in _OFF:
        return None
    where = (default_directory(), size_limit())
    found = _OPEN.get(where)
    if found is None:
        found = _OPEN[where] = Cache(*where)
    return None if found.why_off is not None else found
