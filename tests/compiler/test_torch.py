"""Tensors of torch as arguments: every kind is used in place, or refused with what to pass instead."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flyllvm
import flyllvm.compiler as flyc
import flyllvm.expr as fx
from flyllvm.errors import LaunchError

from .torch_like import HAS_TORCH, LIBRARIES

pytestmark = pytest.mark.sim


@pytest.fixture(autouse=True)
def simulator(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLYLLVM_DEVICE", "sim")
    monkeypatch.setenv("FLYLLVM_ARCH", "gfx942")


@pytest.fixture(params=LIBRARIES, ids=lambda kind: kind.__name__)
def lib(request: pytest.FixtureRequest) -> Any:
    return request.param()


def odd(lib: Any, kind: str) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch calls some of them prototypes
        return lib.odd(kind)


@flyc.kernel
def copy(x: fx.Tensor, y: fx.Tensor):
    t = fx.thread_idx.x
    y[t] = x[t]


@flyc.kernel
def copy_2d(x: fx.Tensor, y: fx.Tensor):
    t = fx.thread_idx.x
    y[t // 4, t % 4] = x[t // 4, t % 4]


@pytest.mark.parametrize(
    "dtype",
    ["float16", "bfloat16", "float32", "float64", "int8", "uint8", "int16", "int32", "int64", "float8_e4m3fn",
     "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz"],
)  # fmt: skip
def test_every_element_type_is_copied_bit_by_bit(lib: Any, dtype: str) -> None:
    x, y = lib.array(np.arange(16), dtype), lib.array(np.zeros(16), dtype)
    copy(x, y).launch(block=16)
    assert lib.bytes(y) == lib.bytes(x) != bytes(len(lib.bytes(x)))


def test_strided_tensors_are_used_in_place(lib: Any) -> None:
    a = lib.array(np.arange(32).reshape(8, 4), "float32")
    for x in (lib.view(a, slice(0, 8, 2)), lib.turned(lib.view(a, slice(0, 4))), lib.view(a, slice(3, 7))):
        y = lib.array(np.zeros((8, 4)), "float32")
        out = lib.view(y, slice(0, 8, 2))
        copy_2d(x, out).launch(block=16)
        assert lib.bytes(out) == lib.bytes(x)
        # The rows between those of the view are untouched.
        assert lib.bytes(lib.view(y, slice(1, 8, 2))) == bytes(64)


def test_an_offset_that_is_less_aligned_is_another_kernel_and_right(lib: Any) -> None:
    a, y = lib.array(np.arange(17), "float32"), lib.array(np.zeros(16), "float32")

    @flyc.jit
    def run(x, y):
        copy(x, y).launch(block=16)

    for start in (0, 1, 0):
        x = lib.view(a, slice(start, start + 16))
        run(x, y)
        assert lib.bytes(y) == lib.bytes(x)
    assert run.recordings == 2


def test_a_tensor_that_requires_grad_is_an_argument(lib: Any) -> None:
    x, y = odd(lib, "requires_grad"), lib.array(np.ones((4, 4)), "float32")
    assert x.requires_grad
    copy_2d(x, y).launch(block=16)
    assert lib.bytes(y) == bytes(64)


REFUSED = {
    "0-dim": r"an array without dimensions\n.*a.reshape\(1\)",
    "meta": r"tensor on device meta\n.*move it to host memory",
    "sparse": r"tensor of layout torch.sparse_coo\n.*t.to_dense\(\)",
    "csr": r"tensor of layout torch.sparse_csr\n.*t.to_dense\(\)",
    "nested": r"nested tensor\n.*t.unbind\(\)",
    "fake": r"tensor without data\n.*no fake or freed one",
    "vmap": r"tensor without memory of its own: Cannot access data pointer.*\n.*outside of torch.compile",
    "conj": r"pending conjugation or negation\n.*t.resolve_conj\(\)",
    "bool": r"tensor of torch.bool: .*\n.*view it as uint8",
}


@pytest.mark.parametrize("kind", REFUSED)
@pytest.mark.parametrize("way", ["launch", "from_dlpack", "replayed"])
def test_tensors_without_plain_memory_are_refused(lib: Any, kind: str, way: str) -> None:
    x, y = odd(lib, kind), lib.array(np.zeros((4, 4)), "float32")

    @flyc.jit
    def run(x, y):
        copy_2d(x, y).launch(block=16)

    run(lib.array(np.ones((4, 4)), "float32"), y)
    with warnings.catch_warnings(), pytest.raises(LaunchError, match=REFUSED[kind]):
        warnings.simplefilter("ignore")  # torch warns of the address of a fake
        if way == "launch":
            copy_2d(x, y).launch(block=16)
        elif way == "replayed":
            run(x, y)
        else:
            flyc.from_dlpack(x).spec()


def test_an_empty_tensor_needs_a_run_time_extent(lib: Any) -> None:
    @flyc.kernel
    def fill(x: fx.Tensor, y: fx.Tensor):
        t = fx.thread_idx.x
        y[t] = 5.0
        if t < x.shape[0]:
            y[t] = x[t]

    empty, y = odd(lib, "zero-size"), lib.array(np.zeros(16), "float32")
    with pytest.raises(LaunchError, match=r"an array of shape \(0,\) has no elements\n.*mark_shape_dynamic"):
        fill(empty, y).launch(block=16)
    fill(flyc.from_dlpack(empty).mark_shape_dynamic(), y).launch(block=16)
    assert lib.bytes(y) == np.full(16, 5, np.float32).tobytes()


def test_tensors_without_dimensions_are_numbers(lib: Any) -> None:
    @flyc.kernel
    def scale(y: fx.Tensor, a: fx.Float32, n: fx.Int32):
        y[fx.thread_idx.x] = a * n

    y = lib.array(np.zeros(16), "float32")
    scale(y, odd(lib, "0-dim"), lib.array(np.array(2), "int32")).launch(block=16)
    assert lib.bytes(y) == np.full(16, 6, np.float32).tobytes()
    with pytest.raises(LaunchError, match=r"argument n: 3.0 for Int32\n.*pass an int"):
        scale(y, 1.0, odd(lib, "0-dim")).launch(block=16)


def test_handles_marks_and_artifacts_take_tensors(lib: Any) -> None:
    @flyc.jit
    def run(x, y):
        copy(x, y).launch(block=16)

    x = lib.array(np.arange(16), "bfloat16")
    made = flyc.compile(copy, x, x, arch="gfx942", known_block_size=16, stop_after="llvm")
    for way in (
        lambda y: flyc.compile(run, x, y, arch="gfx942")(x, y),
        lambda y: copy(flyc.from_torch_tensor(x).mark_layout_dynamic(), y).launch(block=16),
        lambda y: made.simulate(x, y, grid=1),
    ):
        y = lib.array(np.zeros(16), "bfloat16")
        way(y)
        assert lib.bytes(y) == lib.bytes(x)


ORDERS = """
import os, sys
os.environ.update(FLYLLVM_DEVICE="sim", FLYLLVM_ARCH="gfx942", FLYLLVM_CACHE="0")
{imports}
from kernels import copy
y = torch.zeros(16)
copy(torch.ones(16), y).launch(block=16)
assert y.sum().item() == 16
x = torch.ones(8, 8)
print("both work", (x @ x).sum().item())
"""
KERNELS = """
import flyllvm.compiler as flyc
import flyllvm.expr as fx

@flyc.kernel
def copy(x: fx.Tensor, y: fx.Tensor):
    y[fx.thread_idx.x] = x[fx.thread_idx.x]
"""
#: Stands for torch where it is not installed.
MODULE = """
import numpy as np

class Tensor:
    dtype, is_cuda, device = "torch.float32", False, "cpu"
    def __init__(self, held): self.held, self.shape = np.asarray(held, np.float32), np.shape(held)
    def data_ptr(self): return self.held.ctypes.data
    def stride(self): return tuple(s // 4 for s in self.held.strides)
    def sum(self): return Tensor(self.held.sum())
    def item(self): return self.held.item()
    def __matmul__(self, other): return Tensor(self.held @ other.held)

def zeros(*shape): return Tensor(np.zeros(shape, np.float32))
def ones(*shape): return Tensor(np.ones(shape, np.float32))
"""


@pytest.mark.parametrize("first", ["torch", "flyllvm"])
def test_both_import_orders_work(first: str, tmp_path: Path) -> None:
    (tmp_path / "kernels.py").write_text(KERNELS, encoding="utf-8")
    if not HAS_TORCH:
        (tmp_path / "torch.py").write_text(MODULE, encoding="utf-8")
    ours = "import flyllvm, flyllvm.compiler, flyllvm.expr\n"
    imports = f"import torch\n{ours}" if first == "torch" else f"{ours}assert 'torch' not in sys.modules\nimport torch"
    path = os.pathsep.join([os.fspath(tmp_path), os.fspath(Path(flyllvm.__file__).parents[1])])
    done = subprocess.run(
        [sys.executable, "-c", ORDERS.format(imports=imports)], capture_output=True, text=True, timeout=120,
        env={**os.environ, "PYTHONPATH": path},
    )  # fmt: skip
    assert (done.stdout, done.returncode) == ("both work 512.0\n", 0), done.stderr
