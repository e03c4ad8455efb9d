"""Devices and the checks of a launch before HIP is called."""

from __future__ import annotations

import pytest

from flyllvm.codeobject import KernelInfo, inspect
from flyllvm.errors import LaunchError
from flyllvm.runtime import Device, HipError, check_launch, devices
from tests.codeobject.images import object_bytes
from tests.hip_double.build import Double
from tests.hip_double.fixtures import restart

ARCHES = [
    ("gfx90a:sramecc+:xnack-", 64, 104, 65536),
    ("gfx942:sramecc+:xnack-", 64, 304, 65536),
    ("gfx950:sramecc+:xnack-", 64, 256, 163840),
    ("gfx1100", 32, 48, 65536),
    ("gfx1201", 32, 64, 65536),
]


@pytest.mark.parametrize(("arch", "wave", "units", "lds"), ARCHES)
def test_properties_are_read(
    double: Double, monkeypatch: pytest.MonkeyPatch, arch: str, wave: int, units: int, lds: int
) -> None:
    restart(double, monkeypatch, arch)
    found = Device.current()
    assert (str(found.target_id), found.wave_size, found.compute_units, found.lds_bytes) == (arch, wave, units, lds)
    assert found.max_threads == 1024 and found.max_block == (1024, 1024, 1024)
    assert found.max_grid[0] == (1 << 31) - 1 and found.memory_bytes == 1 << 32
    assert "double of gfx" in found.name and repr(found).startswith("Device(0, 'flyllvm double")


def test_all_devices_are_listed_and_one_can_be_chosen(double: Double, monkeypatch: pytest.MonkeyPatch) -> None:
    restart(double, monkeypatch, "gfx942", devices=3)
    assert [d.index for d in devices()] == [0, 1, 2]
    devices()[2].use()
    assert Device.current().index == 2
    devices()[0].use()
    with pytest.raises(HipError, match=r"hipErrorInvalidDevice"):
        Device(3)


def gemm() -> KernelInfo:
    return inspect(object_bytes("gemm_gfx942")).kernels["gemm"]


@pytest.mark.parametrize(
    ("grid", "block", "lds", "match"),
    [
        ((0, 1, 1), (256, 1, 1), 0, r"(?s)launch of gemm: grid.x = 0.*from 1 to 2147483647"),
        ((1, 1, 70000), (256, 1, 1), 0, r"(?s)grid.z = 70000.*from 1 to 65536"),
        ((1, 1, 1), (256, 0, 1), 0, r"(?s)block.y = 0.*from 1 to 1024"),
        ((1.0, 1, 1), (256, 1, 1), 0, r"grid.x = 1.0"),
        ((1, 1), (256, 1, 1), 0, r"(?s)grid \(1, 1\).*three sizes each"),
        ((1 << 25, 1, 1), (256, 1, 1), 0, r"(?s)33554432 workgroups of 256 work items in x.*below 2\*\*32"),
        ((1, 1, 1), (512, 1, 1), 0, r"(?s)512 work items; gemm was compiled for at most 256.*use at most 256"),
        ((1, 1, 1), (64, 8, 1), 0, r"block \(64, 8, 1\) has 512 work items"),
        (
            (1, 1, 1),
            (256, 1, 1),
            49153,
            r"(?s)16384 bytes of LDS in the kernel and 49153 at launch.*at most 49152 bytes",
        ),
        ((1, 1, 1), (256, 1, 1), -1, r"-1 at launch"),
    ],
)
def test_a_launch_that_does_not_fit_is_refused(
    double: Double, grid: tuple[int, ...], block: tuple[int, ...], lds: int, match: str
) -> None:
    with pytest.raises(LaunchError, match=match):
        check_launch(gemm(), Device.current(), grid, block, lds)  # type: ignore[arg-type]


def test_a_launch_that_just_fits_passes(double: Double) -> None:
    check_launch(gemm(), Device.current(), ((1 << 24) - 1, 65536, 65536), (256, 1, 1), 49152)


def test_a_required_workgroup_size_is_kept(double: Double) -> None:
    kernel = gemm()
    kernel.reqd_workgroup_size = (256, 1, 1)
    check_launch(kernel, Device.current(), (1, 1, 1), (256, 1, 1))
    with pytest.raises(LaunchError, match=r"(?s)block \(128, 2, 1\).*compiled for \(256, 1, 1\) only"):
        check_launch(kernel, Device.current(), (1, 1, 1), (128, 2, 1))
