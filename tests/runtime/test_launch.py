"""The whole launch path, device-neutral: these tests run on the double and, unchanged, on a real GPU."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from flyllvm.codeobject import CodeObject, link
from flyllvm.runtime import Device, DeviceArray, Event, HipError, LoadedModule, Stream, synchronize
from tests.codeobject.images import FIXTURES, object_bytes
from tests.hip_double.execute import Executor

pytestmark = pytest.mark.hip

COUNT = 1000
BLOCK = 256


def code_for(device: Executor | None, fixture: str, source: str) -> CodeObject:
    """The fixture's code object for the device that is there."""
    processor = Device.current().target_id.processor
    if not (FIXTURES / f"{fixture}_{processor}.o").exists():
        pytest.skip(f"no fixture {fixture} for {processor}")
    code = CodeObject.from_image(link(object_bytes(f"{fixture}_{processor}")))
    if device is not None:
        device.knows(code.image, (FIXTURES / f"{source}.ll").read_text(encoding="utf-8"))
    return code


@pytest.fixture
def vector_add(device: Executor | None) -> Iterator[LoadedModule]:
    with LoadedModule(code_for(device, "vector_add", "vector_add")) as module:
        yield module


def test_vector_add_agrees_with_numpy_and_leaves_the_rest_alone(vector_add: LoadedModule) -> None:
    rng = np.random.default_rng(7)
    a, b = rng.standard_normal((2, COUNT)).astype(np.float32)
    out = np.full(COUNT + 24, -1, np.float32)
    with DeviceArray.from_numpy(a) as da, DeviceArray.from_numpy(b) as db, DeviceArray.from_numpy(out) as dc:
        vector_add.function("vector_add").launch((4, 1, 1), (BLOCK, 1, 1), [da, db, dc, COUNT])
        synchronize()
        got = dc.numpy()
    assert np.array_equal(got[:COUNT], a + b)
    assert np.array_equal(got[COUNT:], out[COUNT:])


def test_streams_order_copies_and_launches_and_events_measure(vector_add: LoadedModule) -> None:
    ones = np.ones(COUNT, np.float32)
    with Stream() as stream, Event() as start, Event() as end, DeviceArray(COUNT) as a, DeviceArray(COUNT) as c:
        a.copy_from(ones, stream)
        start.record(stream)
        add = vector_add.function("vector_add")
        for _ in range(3):  # 2, 4, 8
            add.launch((4, 1, 1), (BLOCK, 1, 1), [a, a, c, COUNT], types=(None, None, None, "i32"), stream=stream)
            a.copy_from(c, stream)
        end.record(stream)
        got = c.numpy(stream)
        end.synchronize()
        assert end.elapsed_ms(start) >= 0
    assert np.array_equal(got, 8 * ones)


def test_a_gemm_on_the_device_agrees_with_numpy(device: Executor | None) -> None:
    m, n, k = 128, 128, 64
    rng = np.random.default_rng(3)
    a = rng.integers(-3, 4, (m, k)).astype(np.float16)
    b = rng.integers(-3, 4, (n, k)).astype(np.float16)
    code = code_for(device, "gemm", f"gemm_{Device.current().target_id.processor}")
    # The hand-written kernel reads one K tile past the end of its last rows, inside the descriptor.
    with (
        LoadedModule(code) as module,
        DeviceArray.from_numpy(a) as da,
        DeviceArray.from_numpy(b) as db,
        DeviceArray((m, n), np.float16) as dc,
    ):
        module.function("gemm").launch((m // 128, n // 128, 1), (256, 1, 1), [da, db, dc, m, n, k])
        got = dc.numpy()
    assert np.array_equal(got.astype(np.float32), a.astype(np.float32) @ b.astype(np.float32).T)


def test_copies_round_trip_for_all_shapes_and_types(device: Executor | None) -> None:
    for dtype in (np.uint8, np.float16, np.int64):
        for shape in ((), (0,), (3,), (2, 3, 5)):
            host = np.arange(int(np.prod(shape)), dtype=dtype).reshape(shape)
            with DeviceArray.from_numpy(host) as array:
                assert array.shape == shape and np.array_equal(array.numpy(), host)
    with DeviceArray.zeros((4, 4), np.int32) as zeros:
        assert not zeros.numpy().any()


def test_a_kernel_that_is_not_there_is_a_clear_error(vector_add: LoadedModule) -> None:
    with pytest.raises(HipError, match=r"hipModuleGetFunction failed: hipErrorNotFound"):
        vector_add.code_object.kernels["ghost"] = vector_add.code_object.kernels["vector_add"]
        vector_add.function("ghost")
