"""Launches: sizes, LDS, hints, and the errors of each."""

from __future__ import annotations

import gc
import linecache
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import flyllvm.compiler as flyc
import flyllvm.expr as fx
from flyllvm.compiler.kernel_cache import static_lds_bytes
from flyllvm.errors import FlyError, LaunchError, TargetError, TraceError
from flyllvm.ir.parser import parse_module
from flyllvm.ir.printer import print_module

pytestmark = pytest.mark.sim


@pytest.fixture(autouse=True)
def simulator(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("FLYLLVM_DEVICE", "sim")
    monkeypatch.setenv("FLYLLVM_ARCH", "gfx942")
    yield


@flyc.kernel
def ids(out: fx.Tensor):
    i = fx.block_idx.x * fx.block_dim.x + fx.thread_idx.x
    out[i] = i


@flyc.kernel(known_block_size=(32, 2, 1))
def declared(out: fx.Tensor):
    out[fx.thread_idx.y * 32 + fx.thread_idx.x] = fx.known_block_size()[1]


def test_a_static_block_specialises_the_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    traced: list[Any] = []
    trace = flyc.KernelFunction.trace

    def counted(self: Any, *args: Any, **options: Any) -> Any:
        traced.append(options["known_block_size"])
        return trace(self, *args, **options)

    monkeypatch.setattr(flyc.KernelFunction, "trace", counted)

    @flyc.kernel
    def look(out: fx.Tensor):
        x, y, z = fx.known_block_size()
        out[0] = x * 10000 + y * 100 + z

    out = np.zeros(8, np.int32)
    for block, want in ((64, 640101), ((8, 8), 80801), ((64, 1, 1), 640101), ([16, 2, 2], 160202)):
        look(out).launch(block=block)
        assert out[0] == want
    assert traced == [(64, 1, 1), (8, 8, 1), (16, 2, 2)]


def test_the_declared_block_counts_and_must_not_be_contradicted() -> None:
    out = np.zeros(64, np.int32)
    declared(out).launch()
    declared(out).launch(block=(32, 2))
    assert np.all(out == 2)
    with pytest.raises(LaunchError, match=r"test_launch.py:\d+: block=\(64, 1, 1\) for declared\n.*\(32, 2, 1\)"):
        declared(out).launch(block=64)


def test_grids_of_one_to_three_sizes() -> None:
    out = np.zeros(256, np.int32)
    ids(out).launch(grid=np.int64(4), block=(fx.Int32(64),))
    assert np.array_equal(out, np.arange(256))


@pytest.mark.parametrize(
    ("sizes", "text"),
    [
        ({"grid": 0}, "grid=0\n.*one to three positive ints"),
        ({"grid": (1, 2, 3, 4)}, r"grid=\(1, 2, 3, 4\)\n"),
        ({"grid": 1.5}, "grid=1.5\n"),
        ({"grid": True}, "grid=True\n"),
        ({"block": (64, -1)}, r"block=\(64, -1\)\n"),
        ({"block": 2048}, r"block=\(2048, 1, 1\) has 2048 work items\n.*gfx942 takes at most 1024"),
        ({"grid": (1, 70000)}, r"grid.y = 70000\n.*the simulator takes 1 to 65536 workgroups in y"),
        ({"grid": 1 << 28, "block": 64}, r"268435456 workgroups of 64 work items in x\n.*below 2\*\*32"),
        ({"smem": -1}, "smem=-1\n.*0 or more"),
        ({"smem": 70000}, "0 bytes of LDS in ids and smem=70000 at launch; gfx942 has 65536\n.*at most 65536"),
        (
            {"cluster": 2},
            r"clusters of \(2, 1, 1\) workgroups\n.*gfx942 has no clusters.*leave cluster= out.*on gfx1250",
        ),
        ({"cluster": (2, 1), "arch": "gfx1250"}, "grid.x = 1 workgroups in clusters of 2\n.*round the grid up"),
        ({"cluster": (2, 0)}, r"cluster=\(2, 0\)\n.*one to three positive ints"),
        ({"cluster": (4, 8)}, r"cluster=\(4, 8\): 32 workgroups\n.*at most 16 workgroups"),
        ({"stream": "main"}, "'main' is no stream\n.*fx.Stream"),
        ({"known_block_size": 64}, r"known_block_size at a launch\n.*block="),
        ({"waves": 2}, "unknown hint 'waves'\n.*waves_per_eu"),
    ],
)
def test_wrong_sizes_are_refused_at_the_line_of_the_launch(sizes: dict[str, Any], text: str) -> None:
    with pytest.raises(FlyError, match=text) as error:
        ids(np.zeros(64, np.int32)).launch(**sizes)
    assert "test_launch.py:" in str(error.value)


@flyc.kernel(known_block_size=(32, 1, 1))
def places(x: fx.Tensor):
    x[fx.block_idx.x * 32 + fx.thread_idx.x] = fx.rocdl.cluster_workgroup_id_x()


def test_a_workgroup_knows_its_place_in_its_cluster() -> None:
    x = np.full(192, -1, np.int32)
    places(x).launch(grid=6, cluster=(3,), arch="gfx1250")
    assert np.array_equal(x, np.repeat([0, 1, 2] * 2, 32))
    places(x).launch(grid=6, cluster=1, arch="gfx1250")
    assert not x.any()


def test_a_kernel_is_compiled_for_its_clusters_and_says_so() -> None:
    made = flyc.compile(places, "i32[192]", arch="gfx1250", cluster=(3, 2))
    info = made.code_object.kernels["places"]
    assert '"amdgpu-cluster-dims"="3,2,1"' in made.llvm_ir and info.cluster_dims == (3, 2, 1)
    assert flyc.compile(places, "i32[192]", arch="gfx1250").code_object.kernels["places"].cluster_dims is None
    with pytest.raises(FlyError, match=r"clusters in a code object of version 5\n.*pass cov=600"):
        flyc.compile(places, "i32[192]", arch="gfx1250", cluster=2, cov=500)
    declared = flyc.kernel(places.fn, name="places", known_block_size=(32, 1, 1), cluster=2)
    again = flyc.compile(declared, "i32[192]", arch="gfx1250")
    assert again.code_object.kernels["places"].cluster_dims == (2, 1, 1)
    with pytest.raises(FlyError, match="no whole number of clusters"):
        made.simulate(np.zeros(192, np.int32), grid=4)


def test_dynamic_lds_is_given_and_checked() -> None:
    @flyc.kernel
    def reverse(x: fx.Tensor):
        lds = fx.get_dyn_shared(fx.Float32)
        i = fx.thread_idx.x
        lds[i] = x[i]
        fx.barrier()
        x[i] = lds[63 - i]

    x = np.arange(64, dtype=np.float32)
    with pytest.raises(LaunchError, match=r"reverse uses LDS given at launch, and smem is not given\n.*smem=bytes"):
        reverse(x).launch(block=64)
    reverse(x).launch(block=64, smem=256)
    assert np.array_equal(x, np.arange(64)[::-1])


def test_the_kernels_own_allocations_decide_what_is_given() -> None:
    @flyc.kernel
    def reverse(x: fx.Tensor):
        shared = fx.SharedAllocator(static=False)
        shared.allocate(100)
        lds = fx.make_view(fx.recast_iter(fx.Float32, shared.allocate(256)), fx.make_layout(64, 1))
        i = fx.thread_idx.x
        lds[i] = x[i]
        fx.barrier()
        x[i] = lds[63 - i]

    x = np.arange(64, dtype=np.float32)
    for smem in (None, 368, 1024):
        before = x.copy()
        reverse(x).launch(block=64, smem=smem)
        assert np.array_equal(x, before[::-1])
    with pytest.raises(LaunchError, match=r"smem=256 bytes for reverse\n.*its allocations take 368"):
        reverse(x).launch(block=64, smem=256)


def test_static_and_dynamic_lds_together_must_fit() -> None:
    @flyc.kernel
    def static(x: fx.Tensor):
        lds = fx.shared_memory(fx.Float32, 64)
        lds[fx.thread_idx.x] = x[fx.thread_idx.x]
        x[fx.thread_idx.x] = lds[fx.thread_idx.x]

    x = np.ones(64, np.float32)
    static(x).launch(block=64, smem=65536 - 256)
    with pytest.raises(LaunchError, match=r"256 bytes of LDS in static and smem=65536 .*\n.*at most 65280 bytes"):
        static(x).launch(block=64, smem=65536)


def test_lds_of_a_kernel_is_counted_with_its_padding() -> None:
    text = (
        "@a = internal addrspace(3) global [100 x i8] poison, align 16\n"
        "@b = internal addrspace(3) global [64 x i8] poison, align 1024\n"
        "@c = external addrspace(3) global [0 x i8], align 1024\n"
    )
    assert static_lds_bytes(text.rpartition("@c")[0]) == 64 + 100
    # LLVM counts the padding up to what is given at launch as the kernel's own.
    assert static_lds_bytes(text) == 1024


# --- hints ----------------------------------------------------------------------------------------------------


def attributes(**hints: Any) -> str:
    return str(flyc.compile(ids, "i32[64]", arch="gfx942", stop_after="llvm", **hints).llvm_ir)


@pytest.mark.parametrize("value", [1, 8, (1, 4)])
def test_waves_per_eu_from_1_to_8(value: Any) -> None:
    text = str(value) if isinstance(value, int) else "1,4"
    assert f'"amdgpu-waves-per-eu"="{text}"' in attributes(waves_per_eu=value)


@pytest.mark.parametrize("value", [0, 9, True, 1.0, "2", (4, 2), (1, 2, 3)])
def test_waves_per_eu_outside_is_refused_wherever_it_is_given(value: Any) -> None:
    out = np.zeros(64, np.int32)
    for use in (
        lambda: attributes(waves_per_eu=value),
        lambda: flyc.compile[{"waves_per_eu": value}](ids, "i32[64]", arch="gfx942"),
        lambda: flyc.kernel(waves_per_eu=value)(ids.fn),
        lambda: flyc.jit(waves_per_eu=value)(lambda x: ids(x).launch()),
        lambda: ids(out).launch(waves_per_eu=value),
    ):
        with pytest.raises(TraceError, match=r"waves_per_eu=.*\n.*(1 to 8|smaller number first)"):
            use()


def test_hints_by_their_rank() -> None:
    kernel = flyc.kernel(waves_per_eu=1)(ids.fn)
    compiled = flyc.compile[{"waves_per_eu": 2}](kernel, "i32[64]", arch="gfx942", stop_after="llvm")
    assert '"amdgpu-waves-per-eu"="2"' in compiled.llvm_ir

    @flyc.jit(waves_per_eu=3)
    def run(x, own: fx.Constexpr = None):
        kernel(x).launch(block=64, waves_per_eu=own)

    def of(handle: Any) -> str:
        return str(handle.llvm_ir)

    assert '"amdgpu-waves-per-eu"="3"' in of(flyc.compile(run, "i32[64]", arch="gfx942", stop_after="llvm"))
    made = flyc.compile[{"waves_per_eu": 4}](run, "i32[64]", arch="gfx942", stop_after="llvm")
    assert '"amdgpu-waves-per-eu"="4"' in of(made)
    made = flyc.compile[{"waves_per_eu": 4}](run, "i32[64]", 5, arch="gfx942", stop_after="llvm")
    assert '"amdgpu-waves-per-eu"="5"' in of(made)


def test_fast_math_and_denormals_reach_the_code() -> None:
    @flyc.kernel
    def mul(x: fx.Tensor, a: fx.Float32):
        x[0] = x[0] * a

    def text(**hints: Any) -> str:
        return str(flyc.compile(mul, "f32[1]", fx.Float32, arch="gfx942", stop_after="llvm", **hints).llvm_ir)

    assert "fmul float" in text()
    assert "fmul nnan contract float" in text(fastmath=("nnan", "contract"))
    assert "fmul nnan ninf nsz arcp contract afn reassoc float" in text(fastmath=True)
    assert "denormal-fp-math" not in text()
    assert "denormal" in text(denormals="flush_f32") and "preserve-sign" in text(denormal_mode="flush_f32")
    assert text(unsafe_fp_math=True) == text(fast_fp_math=True) == text(fastmath=True)
    with pytest.raises(TraceError, match=r"fastmath='fats'\n.*use True, or some of"):
        text(fastmath="fats")
    with pytest.raises(TraceError, match=r"noalias=1\n.*True or False"):
        text(noalias=1)


def test_hints_survive_the_text_of_the_ir() -> None:
    hints = {"waves_per_eu": (1, 2), "maxnreg": 64, "fastmath": ("nnan",), "noalias": True}
    made = flyc.compile(ids, "i32[64]", arch="gfx942", stop_after="llvm", **hints)
    module = parse_module(made.fly_ir)
    assert print_module(module) == made.fly_ir
    attrs = module.kernels[0].attrs
    assert attrs["maxnreg"] == 64 and tuple(attrs["waves_per_eu"]) == (1, 2)


@pytest.mark.llvm
def test_maxnreg_bounds_the_vector_registers() -> None:
    @flyc.kernel(known_block_size=64)
    def hungry(x: fx.Tensor):
        i = fx.thread_idx.x
        values = [x[i + 64 * k] for k in range(100)]
        fx.barrier()
        for k, v in enumerate(values):
            x[i + 64 * k] = v + values[k - 1]

    def registers(**hints: Any) -> int:
        code = flyc.compile(hungry, "f32[6400]", arch="gfx942", **hints).code_object
        return int(code.kernels["hungry"].vgpr_count)

    assert registers() > 64
    assert registers(maxnreg=64) <= 64
    for value in (7, 513, True):
        with pytest.raises(TraceError, match=r"maxnreg=.*\n.*from 8 to 512"):
            registers(maxnreg=value)


def test_maxnreg_is_refused_where_llvm_ignores_it() -> None:
    with pytest.raises(TargetError, match=r"asks for at most 64 registers\n.*use waves_per_eu"):
        flyc.compile(ids, "i32[64]", arch="gfx1250", maxnreg=64)


def test_hints_that_are_no_dict_are_refused() -> None:
    with pytest.raises(TraceError, match=r"compile\[3\]\n.*write the hints as a dict"):
        flyc.compile[3]


# --- artifacts --------------------------------------------------------------------------------------------------


def test_an_artifact_is_called_with_a_grid() -> None:
    art = flyc.compile(ids, "i32[?]:(1)", arch="gfx942", known_block_size=64, stop_after="llvm")
    out = np.zeros(128, np.int32)
    for _ in range(2):
        art(out, grid=2)
        assert np.array_equal(out, np.arange(128))
        out[:] = 0
    with pytest.raises(LaunchError, match=r"test_launch.py:\d+: 2 arguments for out\n.*pass 1 arguments"):
        art(out, 3, grid=2)
    with pytest.raises(LaunchError, match=r"block=\(32, 1, 1\) for ids\n"):
        art(out, grid=2, block=32)


def test_compile_takes_arguments_of_every_kind() -> None:
    @flyc.kernel
    def many(x: fx.Tensor, p: fx.Pointer, n: fx.Int64, a, m: fx.Constexpr[int], k: int = 1):
        x[0] = n + m + k
        p[0] = a

    x = np.zeros(4, np.int64)
    art = flyc.compile(many, x, x.view(np.int32), 5, 7, 3, arch="gfx942", stop_after="llvm")
    assert [str(s) for s in art.specs] == ["i64[4]:(1){align=16}", "ptr<i32>{align=16}", "i64", "i32"]
    with pytest.raises(TraceError, match=r"argument a of many is a stream\n.*kernels take no streams"):
        flyc.compile(many, x, x, 5, fx.Stream(None), 7, arch="gfx942")
    with pytest.raises(TraceError, match=r"pass a function decorated with @flyc.kernel or @flyc.jit"):
        flyc.compile(test_hints_by_their_rank, arch="gfx942")


def test_the_environment_decides_where_launches_go(monkeypatch: pytest.MonkeyPatch) -> None:
    out = np.zeros(64, np.int32)
    monkeypatch.setenv("FLYLLVM_DEVICE", "gpu")
    with pytest.raises(LaunchError, match=r"FLYLLVM_DEVICE='gpu'\n.*auto, hip, sim"):
        ids(out).launch(block=64)
    monkeypatch.setenv("FLYLLVM_DEVICE", "sim")
    monkeypatch.setenv("FLYLLVM_ARCH", "gfx1")
    with pytest.raises(TargetError, match=r"unknown target 'gfx1'"):
        ids(out).launch(block=64)
    ids(out).launch(block=64, arch="gfx1100")
    assert np.array_equal(out, np.arange(64))


def test_a_call_without_a_launch_warns_with_its_line() -> None:
    out = np.zeros(64, np.int32)
    with pytest.warns(RuntimeWarning, match=r"ids\(\.\.\.\) is never launched: append \.launch\(grid=") as caught:
        ids(out)
        gc.collect()
    (warning,) = caught
    assert warning.filename == __file__ and "        ids(out)" in linecache.getline(__file__, warning.lineno)
    with pytest.raises(LaunchError):
        ids(out).launch(grid=0)  # a launch that fails has its error
