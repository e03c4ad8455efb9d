"""Where an operation was written."""

from __future__ import annotations

from typing import Any

from flyllvm.ir.location import capture

SOURCE = "def author(capture):\n    return helper(capture)\n\n\ndef helper(capture):\n    return capture()\n"


def author(path: str) -> Any:
    namespace: dict[str, Any] = {}
    exec(compile(SOURCE, path, "exec"), namespace)
    return namespace["author"]


def test_a_location_names_the_helper_and_who_called_it() -> None:
    made = author("kernels.py")
    location = made(lambda: capture(made.__code__, skip=2))
    assert str(location) == "kernels.py:6 (called from kernels.py:2)"


def test_files_of_equal_text_keep_their_own_names() -> None:
    first, second = author("one.py"), author("two.py")
    assert first.__code__ == second.__code__  # Python compares what code does, not where it stands

    def place(made: Any) -> str:
        return str(made(lambda: capture(made.__code__, skip=2)))

    assert place(first) == "one.py:6 (called from one.py:2)"
    assert place(second) == "two.py:6 (called from two.py:2)"


def test_the_same_place_gives_the_same_object() -> None:
    made = author("kernels.py")
    places = [made(lambda: capture(made.__code__)) for _ in range(3)]
    assert places[0] is places[1] is places[2]
