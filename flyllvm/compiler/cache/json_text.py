"""JSON without the package ``json``, which loads ``re``, ``enum`` and ``functools``: a tenth of a look-up's time."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class _Plain:
    """What Python's scanner asks of a decoder."""

    strict = True
    object_hook = object_pairs_hook = None
    parse_float = float
    parse_int = int
    memo: dict[str, str] = {}

    @staticmethod
    def parse_constant(name: str) -> Any:
        raise ValueError(f"{name} is no JSON")


def loads(text: str) -> Any:
    """The value of a JSON text that begins with it.

    Raises:
        ValueError: It is no JSON.
    """
    try:
        from _json import make_scanner
    except ImportError:  # another Python than CPython
        import json

        return json.loads(text)
    try:
        value, end = make_scanner(_Plain)(text, 0)  # type: ignore[arg-type]
    except StopIteration:
        raise ValueError("no JSON value") from None
    if text[end:].strip():
        raise ValueError(f"more behind the value, from {end} on")
    return value


def dumps(value: Any) -> str:
    """The JSON text of dictionaries, lists, tuples, strings, finite numbers, truth values and ``None``.

    Raises:
        TypeError: There is something else in it.
        ValueError: A float is not finite.
    """
    if isinstance(value, str):
        return _quoted(value)
    if value is None or value is True or value is False:
        return {None: "null", True: "true", False: "false"}[value]
    if type(value) is int:
        return str(value)
    if type(value) is float:
        if value - value != 0:
            raise ValueError(f"{value} is no JSON")
        return repr(value)
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(dumps, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join([f'{_quoted(k)}: {dumps(v)}' for k, v in value.items()])}}}"
    raise TypeError(f"{type(value).__name__} is no JSON")


def _quoted(text: str) -> str:
    try:
        from _json import encode_basestring_ascii
    except ImportError:
        from json.encoder import encode_basestring_ascii
    return encode_basestring_ascii(text)
