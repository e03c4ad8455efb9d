"""What made an entry, besides its input: flyllvm's own files, Python, llvmlite."""

from __future__ import annotations

import os
import sys
from _blake2 import blake2b

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from .store import Cache

_HOME = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
#: Rooms that have no part in what LLVM gets.  ``kernels`` is followed like an author's code.
_OTHER_ROOMS = ("__pycache__", "cli", "kernels", "runtime", "sim", "testing")
#: What makes an image from LLVM IR.
_BACK_END = ("codeobject/", "codegen/worker.py", "codegen/client.py", "codegen/levers.py", "compiler/image.py")
_KNOWN: dict[str, str] = {}


def own_files() -> str:
    """A sum over the contents of flyllvm's own files: all that has a part in what LLVM gets."""
    return _sums()[0]


def back_end() -> str:
    """A sum over the files that come after LLVM IR: the worker and the linker."""
    return _sums()[1]


def _sums() -> tuple[str, str]:
    """Both sums.

    Reading all files takes longer than a look-up should, so the sums are kept in the cache under the files' sizes,
    times and inode numbers; the time of an inode's last change cannot be set by hand.
    """
    if "all" not in _KNOWN:
        from .store import open_cache

        _KNOWN["all"], _KNOWN["back end"] = _kept_sums(open_cache())
    return _KNOWN["all"], _KNOWN["back end"]


def _kept_sums(cache: Cache | None) -> tuple[str, str]:
    marks = blake2b(digest_size=20)
    paths = []
    for path, info in _files(_HOME):
        marks.update(f"{path} {info.st_size} {info.st_mtime_ns} {info.st_ctime_ns} {info.st_ino}\n".encode())
        paths.append(path)
    key = marks.hexdigest()
    found = cache.get("self", key) if cache is not None else None
    if found is not None:
        return str(found[0]["all"]), str(found[0]["back_end"])
    total, back = blake2b(digest_size=20), blake2b(digest_size=20)
    for path in paths:
        with open(path, "rb") as f:
            data = f.read()
        name = path[len(_HOME) + 1 :]
        for made in (total, back) if name.replace(os.sep, "/").startswith(_BACK_END) else (total,):
            made.update(f"{name} {len(data)}\n".encode())
            made.update(data)
    if cache is not None:
        cache.put("self", key, {"all": total.hexdigest(), "back_end": back.hexdigest()}, {})
    return total.hexdigest(), back.hexdigest()


def _files(folder: str) -> Iterator[tuple[str, os.stat_result]]:
    with os.scandir(folder) as items:
        for item in sorted(items, key=lambda i: i.name):
            if item.is_dir():
                if folder != _HOME or item.name not in _OTHER_ROOMS:
                    yield from _files(item.path)
            elif item.name.endswith((".py", ".gz")):
                yield item.path, item.stat()


def llvm() -> str | None:
    """The llvmlite that the compile worker loads, found without importing it; ``None`` where that cannot be told."""
    python = os.environ.get("FLYLLVM_WORKER_PYTHON") or sys.executable
    if python not in _KNOWN:
        folders = sys.path if python == sys.executable else _folders_of(python)
        found = next((v for v in map(_version_in, folders) if v), None)
        if found is None:
            return None
        _KNOWN[python] = found
    return _KNOWN[python]


def _version_in(folder: str) -> str | None:
    try:
        with open(os.path.join(folder, "llvmlite", "_version.py"), "rb") as f:
            return blake2b(f.read(), digest_size=20).hexdigest()
    except OSError:
        return None


def _folders_of(python: str) -> list[str]:
    """Where a Python of an environment of its own keeps its packages."""
    import glob

    base = os.path.dirname(os.path.dirname(os.path.abspath(python)))
    return glob.glob(os.path.join(glob.escape(base), "lib", "python3.*", "site-packages"))


def python() -> str:
    """The Python that traces: bytecode and syntax trees are its own."""
    return f"{sys.implementation.name} {sys.version_info[:3]}"
