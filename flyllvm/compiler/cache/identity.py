"""What made an entry, besides its input: flyllvm's own files, Python, llvmlite."""

from __future__ import annotations

import os
import sys
from _blake2 import blake2b

TYPE_CHECKING = False
if TYPE_CHECKING:
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
    found: list[tuple[str, int, int, int, int]] = []
    _marks(_HOME, found)
    key = blake2b(repr(found).encode("utf-8", "surrogateescape"), digest_size=20).hexdigest()
    paths = [mark[0] for mark in found]
    kept = cache.get("self", key) if cache is not None else None
    if kept is not None:
        return str(kept[0]["all"]), str(kept[0]["back_end"])
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


def _marks(folder: str, out: list[tuple[str, int, int, int, int]]) -> None:
    """Adds path, size, times and inode of every file in a folder, in the order of the names."""
    with os.scandir(folder) as items:
        found = sorted([(item.name, item) for item in items])
    for name, item in found:
        if name.endswith((".py", ".gz")):
            s = item.stat()
            out.append((item.path, s.st_size, s.st_mtime_ns, s.st_ctime_ns, s.st_ino))
        elif item.is_dir() and not (name == "__pycache__" or (folder == _HOME and name in _OTHER_ROOMS)):
            _marks(item.path, out)


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
