"""Reads the parameters of atom types: what stands between ``<`` and ``>``."""

from __future__ import annotations

from ..errors import AtomError, ParseError
from ..ir.params import split_params as split_params


def options(mnemonic: str, params: str, parts: list[str], known: tuple[str, ...]) -> dict[str, str]:
    """Reads ``key = value`` parts.

    Raises:
        ParseError: A part is none, or its key is unknown or there twice.
    """
    found: dict[str, str] = {}
    for part in parts:
        key, sign, value = (word.strip() for word in part.partition("="))
        if not sign or not value or key not in known or key in found:
            legal = ", ".join(f"{name} = ..." for name in known) or "nothing more"
            raise ParseError(f"{part!r} in !{mnemonic}<{params}>", fix=f"after the first parameters: {legal}")
        found[key] = value
    return found


def parse_width(
    mnemonic: str, params: str, known: tuple[str, ...] = (), example: int = 128
) -> tuple[int, dict[str, str]]:
    """Reads ``bits[, key = value ...]``.

    Args:
        mnemonic: Name of the atom, for errors.
        params: The text.
        known: Legal keys.
        example: A width in bits that the atom has, for errors.

    Raises:
        AtomError: The text does not begin with a number.
        ParseError: What follows is no legal option.
    """
    first, *rest = split_params(params) or [""]
    found = options(mnemonic, params, rest, known)
    if not first.isdigit():
        raise AtomError(f"!{mnemonic}<{params}> names no width", fix=f"write the bits: <{example}>")
    return int(first), found


def parse_shape(text: str) -> tuple[int, int, int] | None:
    """``16x16x4`` as numbers, or ``None``."""
    words = text.split("x")
    if len(words) != 3 or not all(word.isdigit() for word in words):
        return None
    m, n, k = map(int, words)
    return (m, n, k)


def parse_mma(
    mnemonic: str, params: str, known: tuple[str, ...] = ()
) -> tuple[tuple[int, int, int], tuple[str, str, str], dict[str, str]]:
    """Reads ``MxNxK, (A, B) -> C[, key = value ...]``.

    Raises:
        ParseError: The text is not of this form.
    """
    parts = split_params(params)
    shape = parse_shape(parts[0]) if parts else None
    inputs, arrow, acc = parts[1].partition("->") if len(parts) > 1 else ("", "", "")
    inputs = inputs.strip()
    pair = [word.strip() for word in inputs[1:-1].split(",")] if inputs[:1] == "(" and inputs[-1:] == ")" else []
    if shape is None or not arrow or len(pair) != 2 or not acc.strip():
        raise ParseError(f"cannot read !{mnemonic}<{params}>", fix=f"write !{mnemonic}<16x16x16, (f16, f16) -> f32>")
    return shape, (pair[0], pair[1], acc.strip()), options(mnemonic, params, parts[2:], known)
