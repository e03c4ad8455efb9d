"""The names of ``import flyllvm``: loaded at first use, and the same for people and for type checkers."""

from __future__ import annotations

import ast
from pathlib import Path

import numpy
import pytest

import flyllvm

KERNEL = """
define amdgpu_kernel void @seven(ptr addrspace(1) %out) {
  store i32 7, ptr addrspace(1) %out, align 4
  ret void
}
"""


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


class Artifact:
    """As much of a compiled kernel as the simulator asks for."""

    llvm_ir = KERNEL
    target = flyllvm.Target.parse("gfx1100", wave_size=64)


@pytest.mark.sim
@pytest.mark.parametrize(("source", "target"), [(KERNEL, "gfx942"), (Artifact(), "gfx1100")], ids=["text", "artifact"])
def test_simulate_takes_text_or_an_artifact(source: object, target: str) -> None:
    out = numpy.zeros(1, numpy.int32)
    report = flyllvm.simulate(source, grid=1, block=1, args=[out])
    assert out[0] == 7
    assert report.target == target
