"""Whatever a caller passes: it is taken for what it is, or refused with the fix."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from flyllvm.errors import LaunchError, SimError, TargetError
from flyllvm.sim import Simulator, simulate
from flyllvm.target import Target
from tests.sim.kernels import STORE_OUT, kernel

pytestmark = pytest.mark.sim
TEXT = kernel(STORE_OUT.format(value="%t"))


def _run(text: Any = TEXT, **options: Any) -> Any:
    given = {"grid": 1, "block": 64, "args": [np.zeros(64, np.uint32)], **options}
    return simulate(text, **given)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"text": None}, "text is NoneType\n.*as a str, or an artifact"),
        ({"text": TEXT.encode()}, "text is bytes\n.*as a str"),
        ({"text": Path("a.ll")}, r"Path\n.*read_text\(\)"),
        ({"text": "dir/a.ll"}, r"name of a file, not LLVM IR\n.*read_text\(\)"),
        ({"kernel": 3}, "name is 3\n.*pass it as a str"),
        ({"block": 64.0}, "block is 64.0\n.*one to three positive ints"),
        ({"grid": (1, 2, 3, 4)}, "grid is .*\n.*one to three positive ints"),
        ({"args": None}, "args is NoneType\n.*one value for each parameter"),
        ({"args": {"out": 1}}, "args is dict\n.*one value for each parameter"),
        ({"args": [np.ma.array([1, 2], mask=[0, 1])]}, r"has a mask\n.*a?rray.filled"),
        ({"dynamic_lds_bytes": -1}, "dynamic_lds_bytes is -1\n.*pass an int from 0 on"),
        ({"dynamic_lds_bytes": None}, "dynamic_lds_bytes is None\n.*pass an int"),
        ({"max_steps": 0}, "max_steps is 0\n.*pass an int from 1 on"),
        ({"max_steps": "5"}, "max_steps is '5'\n.*pass an int"),
        ({"wave_size": "64"}, "wave_size is '64'\n.*pass an int"),
        ({"resources": 5}, r"resources are 5\n.*code_object.kernels"),
    ],
)
def test_what_makes_no_sense_is_refused_with_the_fix(options: dict[str, Any], message: str) -> None:
    options.setdefault("text", TEXT)
    with pytest.raises(LaunchError, match=message):
        _run(**options)


def test_what_is_meant_is_taken() -> None:
    for grid in (1, np.int64(1), [1, 1], np.array([1, 1, 1]), np.array(1)):
        _run(grid=grid)
    out = np.zeros(64, np.uint32)
    _run(args=iter([out]), kernel="@k", dynamic_lds_bytes=np.int32(4))
    assert np.array_equal(out, np.arange(64))
    with pytest.raises(TargetError, match="a target is text"):
        _run(target=["gfx942"])
    with pytest.raises(SimError, match="use one of: none, default, all"):
        _run(checks="most")


def test_sizes_that_a_kernel_was_compiled_for_are_kept() -> None:
    required = TEXT.replace(")  {", ") !reqd_work_group_size !3 {") + "!3 = !{i32 32, i32 2, i32 1}\n"
    _run(required, block=(32, 2))
    with pytest.raises(LaunchError, match=r"block is \(64, 1, 1\), @k was .*\n.*launch it with block=\(32, 2, 1\)"):
        _run(required)
    most = TEXT.replace(")  {", ') "amdgpu-max-num-workgroups"="2,1,1" {')
    _run(most, grid=2)
    with pytest.raises(LaunchError, match=r"grid is \(3, 1, 1\), @k .*at most \(2, 1, 1\)(?s:.*)use a smaller grid"):
        _run(most, grid=3)


# ---- the chip that a module was compiled for

WAVES = kernel(
    "%b = call i64 @llvm.amdgcn.ballot.i64(i1 true)\n%n = call i64 @llvm.ctpop.i64(i64 %b)\n%v = trunc i64 %n to i32\n"
    + STORE_OUT.format(value="%v")
)


def _for(cpu: str = "", features: str = "", triple: str = "") -> str:
    named = f'"target-cpu"="{cpu}" ' if cpu else ""
    named += f'"target-features"="{features}"' if features else ""
    return (f'target triple = "{triple}"\n' if triple else "") + WAVES.replace(")  {", f") {named} {{", 1)


@pytest.mark.parametrize(
    ("text", "target", "wave"),
    [
        (_for(), "gfx942", 64),
        (_for("gfx1100"), "gfx1100", 32),
        (_for("gfx1100", "+dpp,+wavefrontsize64"), "gfx1100", 64),
        (_for(triple="amdgpu12.01-amd-amdhsa"), "gfx1201", 32),
        (_for(triple="amdgpu9.50-amd-amdhsa"), "gfx950", 64),
        (_for(triple="amdgcn-amd-amdhsa"), "gfx942", 64),
        (_for("gfx90a", triple="amdgcn-amd-amdhsa"), "gfx90a", 64),
    ],
)
def test_a_module_runs_on_the_chip_that_it_was_compiled_for(text: str, target: str, wave: int) -> None:
    out = np.zeros(64, np.uint32)
    report = _run(text, args=[out])
    assert (report.target, report.wave_size) == (target, wave) and (out == wave).all()
    assert Simulator(text, grid=1, block=64, args=[out]).machine.wave_size == wave
    assert _run(text, target=target).wave_size == wave


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        (_for("gfx1100"), {"target": "gfx942"}, "compiled for gfx1100, the target is gfx942\n.*simulate it on gfx1100"),
        (_for(triple="amdgpu12.50-amd-amdhsa"), {"target": "gfx1201"}, "compiled for gfx1250, the target is gfx1201"),
        (_for("gfx1030"), {}, "compiled for gfx1030, which the simulator does not know\n.*close enough"),
        (_for("gfx1100", "+wavefrontsize64"), {"wave_size": 32}, "waves of 64 lanes, the wave size is 32"),
        (_for("gfx1100", "+wavefrontsize64"), {"target": Target.parse("gfx1100")}, "the target has 32\n.*, 64"),
    ],
)
def test_another_chip_is_refused(text: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(LaunchError, match=message):
        _run(text, **options)


def test_a_chip_that_the_simulator_lacks_can_be_replaced() -> None:
    assert _run(_for("gfx1101"), target="gfx1100").target == "gfx1100"


def test_the_chip_of_an_artifact_counts_for_its_text() -> None:
    made = SimpleNamespace(llvm_ir=TEXT, target=Target.parse("gfx950"))
    assert _run(made).target == "gfx950"
