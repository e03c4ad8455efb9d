"""The names of ``import flyllvm``: loaded at first use, and the same for people and for type checkers."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import flyllvm


@pytest.mark.parametrize("name", sorted(flyllvm._HOMES))
def test_every_public_name_loads_from_its_home(name: str) -> None:
    value = getattr(flyllvm, name)
    assert getattr(value, "__name__", name) == name
    assert name in dir(flyllvm)


def test_type_checkers_see_the_same_names() -> None:
    tree = ast.parse(Path(flyllvm.__file__).read_text(encoding="utf-8"))
    (guard,) = (node for node in tree.body if isinstance(node, ast.If))
    typed = {
        alias.asname: f"{node.module}"
        for node in guard.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert typed == flyllvm._HOMES


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'flyllvm' has no attribute 'Targte'"):
        _ = flyllvm.Targte  # type: ignore[attr-defined]
