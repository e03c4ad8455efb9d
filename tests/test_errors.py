"""Every error says what, where and how to fix it, and survives pickling on its way between processes."""

from __future__ import annotations

import pickle

import pytest

from flyllvm import errors
from flyllvm.errors import AtomError, FlyError, LayoutError

KINDS = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, FlyError)]


def test_the_text_has_the_place_first_and_the_fix_on_its_own_line() -> None:
    error = LayoutError("8 does not divide 12", "k.py:7", "use a tile of 4")
    assert str(error) == "k.py:7: 8 does not divide 12\n  fix: use a tile of 4"


def test_place_and_fix_may_be_absent() -> None:
    assert str(LayoutError("8 does not divide 12")) == "8 does not divide 12"


def test_a_place_is_added_once() -> None:
    error = LayoutError("no").at("inner.py:1").at("outer.py:2")
    assert error.where == "inner.py:1"


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_an_error_survives_pickling(kind: type[FlyError]) -> None:
    class Place:
        def __str__(self) -> str:
            return "k.py:7"

    before = kind("what", Place(), "do this")
    after = pickle.loads(pickle.dumps(before))
    assert type(after) is kind
    assert str(after) == str(before)


def test_one_except_clause_catches_all() -> None:
    assert len(KINDS) > 10
    with pytest.raises(FlyError):
        raise AtomError("no")


def test_numbers_of_hundreds_of_digits_are_shortened() -> None:
    error = FlyError(f"extent {'7' * 5000} of x", fix=f"below {'8' * 400}; {'9' * 99} stays")
    assert error.what == "extent 777777777777...(5000 digits) of x" and str(error).startswith(error.what)
    assert error.fix == f"below 888888888888...(400 digits); {'9' * 99} stays"
