"""The texts in docs/ir.md read, verify, and print as they stand there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import flyllvm.atoms
from flyllvm.ir.parser import parse_module
from flyllvm.ir.printer import print_kernel, print_module
from flyllvm.ir.verifier import verify
from flyllvm.target import Target

PAGE = (Path(__file__).parents[2] / "docs" / "ir.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```mlir\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
assert flyllvm.atoms


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_a_text_of_the_page_prints_as_it_stands(number: int) -> None:
    text = BLOCKS[number]
    module = parse_module(text, "ir.md")
    for kernel in module.kernels:
        verify(kernel, kernel.attrs["stage"], Target.parse("gfx942"))
    printed = print_module(module) if text.startswith("gpu.module") else print_kernel(module.kernels[0])
    assert printed == text


def test_the_page_has_texts() -> None:
    assert len(BLOCKS) >= 4
