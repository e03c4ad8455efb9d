"""Where launches go: to a GPU that fits the target, or to the simulator."""

from __future__ import annotations

import pytest

from flyllvm.errors import LaunchError
from flyllvm.runtime.choice import find_device
from flyllvm.target import Target
from tests.hip_double.build import Double
from tests.hip_double.fixtures import load_double, restart


@pytest.mark.parametrize(
    ("target", "found"),
    [("gfx942", True), ("gfx942:xnack-", True), ("gfx942:xnack+", False), ("gfx950", False), ("gfx1100", False)],
)
def test_auto_takes_a_gpu_that_fits_and_else_the_simulator(
    double: Double, monkeypatch: pytest.MonkeyPatch, target: str, found: bool
) -> None:
    monkeypatch.delenv("FLYLLVM_DEVICE", raising=False)
    assert (find_device(Target.parse(target)) is not None) == found


def test_sim_asks_no_gpu(double: Double, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLYLLVM_DEVICE", "sim")
    assert find_device(Target.parse("gfx942")) is None


def test_hip_says_why_each_gpu_does_not_fit(double: Double, monkeypatch: pytest.MonkeyPatch) -> None:
    restart(double, monkeypatch, "gfx942:sramecc+:xnack-", devices=2)
    monkeypatch.setenv("FLYLLVM_DEVICE", "hip")
    with pytest.raises(
        LaunchError, match=r"(?s)code for gfx942:xnack. .device 0: .*xnack on.*device 1: .*FLYLLVM_DEVICE=sim"
    ):
        find_device(Target.parse("gfx942:xnack+"))


def test_hip_without_a_gpu_says_so(double: Double, monkeypatch: pytest.MonkeyPatch) -> None:
    restart(double, monkeypatch, "gfx942", devices=0)
    monkeypatch.setenv("FLYLLVM_DEVICE", "hip")
    with pytest.raises(LaunchError, match=r"(?s)FLYLLVM_DEVICE=hip: .*hipErrorNoDevice.*run in the simulator"):
        find_device(Target.parse("gfx942"))
    monkeypatch.setenv("FLYLLVM_DEVICE", "auto")
    assert find_device(Target.parse("gfx942")) is None


def test_an_unknown_choice_lists_the_legal_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLYLLVM_DEVICE", "cuda")
    with pytest.raises(LaunchError, match=r"(?s)FLYLLVM_DEVICE='cuda'.*auto, hip, sim"):
        find_device(Target.parse("gfx942"))


def test_the_double_is_invisible_to_tests_that_do_not_ask_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    load_double()
    monkeypatch.delenv("FLYLLVM_DEVICE", raising=False)
    assert find_device(Target.parse("gfx942")) is None
