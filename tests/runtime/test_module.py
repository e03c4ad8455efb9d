"""Modules and functions on the double: what is refused, what reaches the kernel, what it costs."""

from __future__ import annotations

import gc
import threading
import time

import numpy as np
import pytest

from flyllvm.codeobject import CodeObject, hidden_args, link, pack_kernarg
from flyllvm.errors import LaunchError
from flyllvm.runtime import (
    Device,
    DeviceArray,
    Function,
    HipError,
    LoadedModule,
    Stream,
    load_module,
    module as module_file,
)
from tests.codeobject.images import object_bytes
from tests.hip_double.build import Double, Launch
from tests.hip_double.fixtures import restart


def code(name: str) -> CodeObject:
    return CodeObject.from_image(link(object_bytes(name)))


GEMM = code("gemm_gfx942")
TYPES = (None, None, None, "i32", "i32", "i32")


@pytest.mark.parametrize(
    ("arch", "fixture"),
    [
        ("gfx90a:sramecc+:xnack-", "three_kernels_gfx90a"), ("gfx942:sramecc+:xnack-", "three_kernels_gfx942"),
        ("gfx950:sramecc+:xnack-", "three_kernels_gfx950"), ("gfx1100", "three_kernels_gfx1100"),
        ("gfx942:sramecc+:xnack-", "vector_add_gfx942_v4"), ("gfx942:sramecc+:xnack-", "vector_add_gfx942_v6"),
        ("gfx942:sramecc+:xnack-", "vector_add_gfx942_modes"), ("gfx950:sramecc+:xnack-", "vector_add_generic"),
        ("gfx942:sramecc+:xnack-", "odd_sections"), ("gfx942:sramecc+:xnack-", "debug_lines"),
    ],
)  # fmt: skip
def test_every_code_object_loads_on_its_device(
    double: Double, monkeypatch: pytest.MonkeyPatch, arch: str, fixture: str
) -> None:
    restart(double, monkeypatch, arch)
    with LoadedModule(code(fixture)) as module:
        for name, kernel in module.code_object.kernels.items():
            assert module.function(name).kernel is kernel
            assert module.function(name) is module.function(name)


@pytest.mark.parametrize(
    ("arch", "fixture", "match"),
    [
        ("gfx90a", "gemm_gfx942", r"(?s)code is for gfx942, the device is gfx90a.*compile it for gfx90a"),
        ("gfx942:sramecc+:xnack+", "vector_add_gfx942_modes", r"needs xnack off, the device has it on"),
        ("gfx942:sramecc-:xnack-", "vector_add_gfx942_modes", r"needs sramecc on, the device has it off"),
        ("gfx1100", "vector_add_generic", r"code is for gfx9-4-generic"),
    ],
)
def test_code_for_another_device_is_refused_before_hip_sees_it(
    double: Double, monkeypatch: pytest.MonkeyPatch, arch: str, fixture: str, match: str
) -> None:
    restart(double, monkeypatch, arch)
    before = double.message
    with pytest.raises(LaunchError, match=match):
        LoadedModule(code(fixture))
    assert double.message == before


def test_a_code_object_version_newer_than_rocm_names_both(double: Double, monkeypatch: pytest.MonkeyPatch) -> None:
    from flyllvm.runtime import hip as hip_module

    monkeypatch.setattr(hip_module.hip(), "version", 60_200_000)
    with pytest.raises(LaunchError, match=r"(?s)version 6 needs ROCm 6.3, this is 6.2.*code object version 5"):
        LoadedModule(code("vector_add_gfx942_v6"))
    LoadedModule(code("vector_add_gfx942")).unload()


def test_the_kernel_gets_the_whole_segment_hidden_arguments_included(double: Double) -> None:
    seen: list[tuple[object, ...]] = []

    def look(launch: Launch) -> None:
        seen.append((launch.name, tuple(launch.grid), tuple(launch.block), launch.shared, launch.segment()))

    double.on_launch(look)
    with LoadedModule(code("three_kernels_gfx942")) as module, DeviceArray(64) as out:
        shared = module.function("shared")
        shared.launch((3, 2, 1), (64, 1, 1), [out, 1.5], types=(None, "f32"), dynamic_lds_bytes=512)
        explicit = pack_kernarg(shared.kernel, [out, 1.5], (None, "f32"))
        expected = explicit + hidden_args(shared.kernel, (3, 2, 1), (64, 1, 1), 512)
    assert seen == [(b"shared", (3, 2, 1), (64, 1, 1), 512, expected)]


def test_every_kind_of_argument_arrives(double: Double) -> None:
    segments: list[bytes] = []
    double.on_launch(lambda launch: segments.append(launch.segment()))
    with LoadedModule(code("arguments")) as module, DeviceArray(4) as memory:
        values = [
            -2, 2.5, -300, memory, 1.5, 64, memory.address, np.arange(4, dtype=np.float16), bytes(range(16)), 1.5, True,
            bytes(16), None, np.arange(3, dtype=np.int32),
        ]  # fmt: skip
        types = ("i8", "f64", "i16", None, "f32", None, None, None, None, "bf16", "i1", None, None, None)
        module.function("k").launch((1, 1, 1), (64, 1, 1), values, types=types)
        assert segments == [pack_kernarg(module.code_object.kernels["k"], values, types)]


@pytest.mark.parametrize(
    ("args", "match"),
    [
        ([1, 2, 3, 4, 5], r"(?s)takes 6 arguments, got 5.*a, b, c, M, N, K"),
        ([np.zeros(4), 0, 0, 1, 1, 1], r"(?s)argument 0 .a. of kernel gemm: a pointer is wanted.*pass device memory"),
        ([0, 0, 0, 1 << 31, 1, 1], r"(?s)argument 3 .M. of kernel gemm: 2147483648 does not fit i32"),
        ([0, 0, 0, 1, 1.0, 1], r"argument 4 .N. of kernel gemm: a value of type i32 is wanted, got float"),
    ],
)
def test_wrong_arguments_never_reach_hip(double: Double, args: list[object], match: str) -> None:
    before = double.launches
    with LoadedModule(GEMM) as module, pytest.raises(LaunchError, match=match):
        module.function("gemm").launch((1, 1, 1), (256, 1, 1), args, types=TYPES)
    assert double.launches == before


def test_a_wild_pointer_is_named_by_the_double(double: Double) -> None:
    with LoadedModule(GEMM) as module, pytest.raises(HipError, match=r"(?s)hipErrorIllegalAddress.*simulator names"):
        module.function("gemm").launch((1, 1, 1), (256, 1, 1), [4096, 0, 0, 1, 1, 1], types=TYPES)
    assert "argument 0 of gemm: 0x1000 is not in device memory" in double.message


def test_a_write_past_an_array_is_found(double: Double) -> None:
    import ctypes

    def smash(launch: Launch) -> None:
        address = int.from_bytes(launch.segment()[:8], "little")
        ctypes.memset(address + 16, 0, 1)

    double.on_launch(smash)
    with LoadedModule(GEMM) as module:
        array = DeviceArray(4)
        with pytest.raises(HipError, match=r"hipErrorIllegalAddress"):
            module.function("gemm").launch((1, 1, 1), (256, 1, 1), [array, 0, 0, 1, 1, 1], types=TYPES)
        with pytest.raises(HipError, match=r"hipFree failed"):
            array.free()


def test_a_fault_of_the_kernel_becomes_an_error(double: Double) -> None:
    double.on_launch(lambda launch: 719)
    with LoadedModule(GEMM) as module, pytest.raises(HipError, match=r"(?s)hipErrorLaunchFailure.*died on the device"):
        module.function("gemm").launch((1, 1, 1), (256, 1, 1), [0, 0, 0, 1, 1, 1], types=TYPES)


def test_an_unknown_kernel_lists_those_there_are(double: Double) -> None:
    with LoadedModule(GEMM) as module, pytest.raises(LaunchError, match=r"(?s)no kernel 'gem'.*its kernels are: gemm"):
        module.function("gem")


def test_an_unloaded_module_is_refused(double: Double) -> None:
    module = LoadedModule(GEMM)
    function = module.function("gemm")
    module.unload()
    module.unload()
    with pytest.raises(LaunchError, match=r"(?s)was unloaded.*before unload"):
        module.function("gemm")
    with pytest.raises(LaunchError, match=r"(?s)module of gemm was unloaded.*load it again"):
        function.launch((1, 1, 1), (256, 1, 1), [0, 0, 0, 1, 1, 1], types=TYPES)


def test_a_function_keeps_its_module_and_the_collector_unloads_it(double: Double) -> None:
    function: Function | None = LoadedModule(GEMM).function("gemm")
    gc.collect()
    assert double.live[1] == 1
    assert function is not None and function.module.loaded
    function = None
    gc.collect()
    assert double.live[1] == 0


def test_a_stream_may_be_the_number_of_another_library(double: Double) -> None:
    seen = []
    double.on_launch(lambda launch: seen.append(launch.stream))
    with LoadedModule(GEMM) as module, Stream() as stream:
        for queue in (stream, stream.handle, None):
            module.function("gemm").launch((1, 1, 1), (256, 1, 1), [0, 0, 0, 1, 1, 1], types=TYPES, stream=queue)
        assert seen == [stream.handle, stream.handle, None]


def test_a_launch_goes_to_the_device_of_the_module_and_leaves_the_current_one(
    double: Double, monkeypatch: pytest.MonkeyPatch
) -> None:
    restart(double, monkeypatch, "gfx942", devices=2)
    on: list[int] = []
    double.on_launch(lambda launch: on.append(Device.current().index))
    Device(1).use()
    with LoadedModule(GEMM) as module:
        Device(0).use()
        module.function("gemm").launch((1, 1, 1), (256, 1, 1), [0, 0, 0, 1, 1, 1], types=TYPES)
        assert on == [1] and Device.current().index == 0
    assert Device.current().index == 0


def test_threads_launch_at_once_with_their_own_arguments(double: Double) -> None:
    seen: list[int] = []
    double.on_launch(lambda launch: seen.append(int.from_bytes(launch.segment()[24:28], "little")))
    with LoadedModule(GEMM) as module:
        function = module.function("gemm")

        def work(first: int) -> None:
            for i in range(first, first + 200):
                function.launch((1, 1, 1), (256, 1, 1), [0, 0, 0, i, 1, 1], types=TYPES)

        threads = [threading.Thread(target=work, args=(1000 * t,)) for t in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(seen) == sorted(i for t in range(4) for i in range(1000 * t, 1000 * t + 200))


def test_many_shapes_are_remembered_within_a_bound(double: Double) -> None:
    with LoadedModule(GEMM) as module:
        function = module.function("gemm")
        for x in range(1, 1500):
            function.launch((x, 1, 1), (256, 1, 1), [0, 0, 0, 1, 1, 1], types=TYPES)
        assert len(function._checked) <= 1024


def test_a_module_is_unloaded_only_when_its_work_is_done(double: Double, monkeypatch: pytest.MonkeyPatch) -> None:
    from flyllvm.runtime import hip as hip_module

    calls: list[str] = []
    call = hip_module.Hip.call
    module = LoadedModule(GEMM)
    monkeypatch.setattr(
        hip_module.Hip, "call", lambda self, name, *args: (calls.append(name), call(self, name, *args))[1]
    )
    module.unload()
    assert calls == ["hipDeviceSynchronize", "hipModuleUnload"]


def test_a_code_object_is_loaded_once_and_again_after_unload(double: Double) -> None:
    again = CodeObject.from_image(bytes(GEMM.image))
    module = load_module(GEMM)
    assert load_module(again) is module and double.live[1] == 1
    module.unload()
    assert load_module(GEMM) is not module


def test_each_device_has_its_own_copy(double: Double, monkeypatch: pytest.MonkeyPatch) -> None:
    restart(double, monkeypatch, "gfx942", devices=2)
    first = load_module(GEMM)
    first.device.use()
    assert load_module(GEMM) is first
    Device(1).use()
    assert load_module(GEMM) is not first and double.live[1] == 2
    Device(0).use()


def test_old_modules_go_unless_somebody_holds_them(double: Double, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module_file, "_MAX_RECENT", 1)
    held = load_module(GEMM).function("gemm")
    for name in ("vector_add_gfx942", "three_kernels_gfx942", "debug_lines"):
        load_module(code(name))
    gc.collect()
    assert double.live[1] == 2  # the last one and the held one
    assert load_module(GEMM).function("gemm") is held


@pytest.mark.slow
def test_modules_load_and_unload_without_end(double: Double, full: bool) -> None:
    import os
    import resource

    def descriptors() -> int:
        return len(os.listdir("/proc/self/fd"))

    def once() -> None:
        with LoadedModule(GEMM) as module:
            module.function("gemm").launch((1, 1, 1), (256, 1, 1), [0, 0, 0, 1, 1, 1], types=TYPES)

    for _ in range(100):
        once()
    before, peak = descriptors(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(5000 if full else 500):
        once()
    assert descriptors() == before
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak < 8192  # KiB


def test_a_launch_costs_microseconds(double: Double) -> None:
    """Three times the budget of 10 us: a busy machine is no defect, a slow path is."""
    with LoadedModule(GEMM) as module, DeviceArray(4) as a:
        launch = module.function("gemm").launch
        args = [a, a, a, 1, 1, 1]
        best = float("inf")
        for _ in range(5):
            start = time.process_time()
            for _ in range(500):
                launch((1, 1, 1), (256, 1, 1), args, types=TYPES)
            best = min(best, (time.process_time() - start) / 500)
    assert best < 30e-6
