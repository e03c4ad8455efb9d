"""The ``--arg`` and ``--expect`` values of ``flyllvm sim``."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import FlyError

Array = npt.NDArray[Any]

_DTYPES: dict[str, Any] = {
    "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64,
    "u8": np.uint8, "u16": np.uint16, "u32": np.uint32, "u64": np.uint64,
    "f16": np.float16, "f32": np.float32, "f64": np.float64,
}  # fmt: skip
_ZEROS = re.compile(r"(\w+)\[([0-9, ]*)\]\Z")
_FIX = "write FILE.npy, TYPE:FILE.npy, TYPE:NUMBER, TYPE[SHAPE] or null"


def _dtype(name: str, text: str) -> Any:
    if name == "bf16":
        import ml_dtypes

        return ml_dtypes.bfloat16
    if name not in _DTYPES:
        raise FlyError(f"--arg {text}: unknown type {name!r}", fix=f"use one of: {', '.join([*_DTYPES, 'bf16'])}")
    return _DTYPES[name]


class Argument:
    """One kernel argument.

    Attributes:
        value: What `simulate` gets.
        file_name: Name of the file it came from.
    """

    def __init__(self, value: Any, file_name: str | None = None, stored: Any = None) -> None:
        self.value, self.file_name, self.stored = value, file_name, stored

    def snapshot(self) -> Array | None:
        """A copy of the bytes before the run."""
        copy: Array | None = self.value.copy("K") if isinstance(self.value, np.ndarray) else None
        return copy

    def result(self) -> Array | None:
        """The array after the run, in the dtype of its file."""
        if not isinstance(self.value, np.ndarray):
            return None
        if self.stored is None or self.stored == self.value.dtype:
            return _plain(self.value)
        if self.stored.itemsize == self.value.dtype.itemsize and self.stored.kind in "Vu":
            same_bytes: Array = self.value.view(self.stored)
            return same_bytes
        converted: Array = self.value.astype(self.stored)
        return converted


def _plain(array: Array) -> Array:
    """NumPy files cannot name bfloat16: such results are written as float32, which holds them exactly."""
    return array.astype(np.float32) if array.dtype.kind == "V" or array.dtype.name == "bfloat16" else array


def _load(text: str, path: str) -> Array:
    try:
        array: Array = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise FlyError(f"{text}: cannot read {path}: {error}", fix="pass a NumPy .npy file") from None
    if not isinstance(array, np.ndarray):
        raise FlyError(f"{text}: {path} holds several arrays", fix="pass a NumPy .npy file")
    return array


def _zeros(text: str, shape: tuple[int, ...], dtype: Any) -> Array:
    try:
        return np.zeros(shape, dtype)
    except (MemoryError, ValueError, OverflowError):  # too many bytes, elements or dimensions
        raise FlyError(f"--arg {text}: a buffer of {shape} does not fit in memory", fix="use a smaller shape") from None


def read_argument(text: str, index: int) -> Argument:
    """Reads one ``--arg``.

    Raises:
        FlyError: Unreadable file, unknown type or malformed number.
    """
    if text == "null":
        return Argument(None)
    match = _ZEROS.match(text)
    if match:
        shape = tuple(int(n) for n in match[2].split(",") if n.strip())
        return Argument(_zeros(text, shape, _dtype(match[1], text)))
    head, sep, tail = text.partition(":")
    if sep and re.fullmatch(r"[a-z]+[0-9]+", head):
        dtype = _dtype(head, text)
        return _typed_file(text, dtype, tail) if tail.endswith(".npy") else Argument(_number(text, head, dtype, tail))
    if text.endswith(".npy"):
        array = _load(f"--arg {text}", text)
        return Argument(np.ascontiguousarray(array), Path(text).name, array.dtype)
    raise FlyError(f"--arg {text!r} (argument {index}) is malformed", fix=_FIX)


def _typed_file(text: str, dtype: Any, path: str) -> Argument:
    array = _load(f"--arg {text}", path)
    stored = array.dtype
    bits = stored.kind == "V" or (stored.kind == "u" and np.dtype(dtype).kind not in "iu")
    if bits and stored.itemsize == np.dtype(dtype).itemsize:
        value = array.view(dtype)
    else:
        value = array.astype(dtype)
    return Argument(np.ascontiguousarray(value), Path(path).name, stored)


def _number(text: str, name: str, dtype: Any, tail: str) -> Any:
    try:
        return int(tail, 0) if np.dtype(dtype).kind in "iu" else float(tail)
    except ValueError:
        raise FlyError(f"--arg {text}: {tail!r} is no number of type {name}", fix=_FIX) from None


def compare(
    index: int | None, file: str, arguments: list[Argument], before: list[Array | None], rtol: float, atol: float
) -> dict[str, Any]:
    """Compares an array after the run with a file.

    Raises:
        FlyError: It is not clear which argument is meant, or shapes differ.
    """
    if index is None:
        index = _written(arguments, before, file)
    if index >= len(arguments) or not isinstance(arguments[index].value, np.ndarray):
        raise FlyError(f"--expect {index}={file}: argument {index} is no array")
    got, want = arguments[index].value, _load(f"--expect {file}", file)
    if want.dtype.kind == "V" and want.dtype.itemsize == got.dtype.itemsize:
        want = want.view(got.dtype)
    if got.shape != want.shape:
        raise FlyError(f"--expect {file} has shape {want.shape}, argument {index} has {got.shape}")
    a, b = got.astype(np.float64), want.astype(np.float64)
    if got.dtype.kind in "iu" and want.dtype.kind in "iu" and not rtol and not atol:
        good = got == want
    else:
        good = np.isclose(a, b, rtol=rtol, atol=atol, equal_nan=True)
    error = np.abs(a - b)
    finite = error[np.isfinite(error)]
    first = None if good.all() else tuple(int(i) for i in np.argwhere(~good)[0])
    return {
        "argument": index, "file": file, "ok": bool(good.all()), "count": int(good.size),
        "different": int(np.count_nonzero(~good)),
        "max_abs_error": float(finite.max()) if finite.size else 0.0,
        "first": None if first is None else list(first),
        "got": None if first is None else str(got[first]), "want": None if first is None else str(want[first]),
    }  # fmt: skip


def _written(arguments: list[Argument], before: list[Array | None], file: str) -> int:
    changed = [
        i for i, (a, old) in enumerate(zip(arguments, before, strict=True))
        if old is not None and a.value.tobytes() != old.tobytes()
    ]  # fmt: skip
    if len(changed) != 1:
        raise FlyError(
            f"--expect {file}: the kernel changed {len(changed)} arrays", fix="say which argument: --expect N=FILE.npy"
        )
    return changed[0]
