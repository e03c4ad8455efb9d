"""The second engine gives what the NumPy engine gives: results, counts, faults."""

from __future__ import annotations

import importlib.util
import inspect
from pathlib import Path

import numpy as np
import pytest

from flyllvm import host
from flyllvm.codegen.client import default_pool
from flyllvm.errors import CodegenError, LaunchError, SimError
from flyllvm.sim import engines, simulate
from flyllvm.sim.jit import engine
from tests.sim import test_foreign
from tests.sim.both import interesting
from tests.sim.engines import Comparing, both
from tests.sim.kernels import FENCED_BARRIER, exchange, gemm, kernel

pytestmark = [pytest.mark.llvm, pytest.mark.sim]
EXAMPLES = sorted((Path(__file__).parents[3] / "examples").glob("[0-9]*.py"))


def test_an_exchange_through_lds_agrees() -> None:
    out = np.zeros(256, np.int32)
    both(exchange(), grid=1, block=256, args=[out])
    assert (out == np.arange(256)[::-1]).all()


def test_the_gemm_of_the_tests_agrees_for_integers_and_for_random_numbers() -> None:
    rng = np.random.default_rng(0)
    for a, b in (
        (rng.integers(-4, 5, (32, 64)), rng.integers(-4, 5, (16, 64))),
        (rng.normal(size=(32, 64)), rng.normal(size=(16, 64))),
        (interesting(np.float16, rng, (32, 64)), interesting(np.float16, rng, (16, 64))),
    ):
        c = np.zeros((32, 16), np.float32)
        both(gemm(), grid=1, block=128, args=[a.astype(np.float16), b.astype(np.float16), c, 64])


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.stem)
def test_the_examples_agree(path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("FLYLLVM_DEVICE", "sim")
    comparing = Comparing(monkeypatch)
    spec = importlib.util.spec_from_file_location(f"engines_{path.stem}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.main() == 0
    assert comparing.ran or comparing.declined
    assert not comparing.declined or path.stem in NOT_COVERED, comparing.declined


@pytest.mark.parametrize("target", ["gfx942", "gfx950"])
def test_kernels_of_other_compilers_agree(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    comparing = Comparing(monkeypatch)
    monkeypatch.setattr(test_foreign, "simulate", comparing.simulate)
    runs = [run for name, run in vars(test_foreign).items() if name.startswith("test_")]
    for run in runs:
        if set(inspect.signature(run).parameters) == {"target", "checks"}:
            run(target, "none")
    assert len(comparing.ran) >= 7 and not comparing.declined, comparing.declined


#: Examples with a kernel that uses what the second engine does not cover.
NOT_COVERED: set[str] = set()


# ---- divergence

LANE_LOOP = """\
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %n, %latch ]
  %s = phi i32 [ 0, %entry ], [ %m, %latch ]
  %odd = and i32 %i, 1
  %c = icmp eq i32 %odd, 0
  br i1 %c, label %add, label %skip
add:
  %sq = mul i32 %i, %i
  br label %latch
skip:
  br label %latch
latch:
  %x = phi i32 [ %sq, %add ], [ 7, %skip ]
  %m = add i32 %s, %x
  %n = add i32 %i, 1
  %done = icmp uge i32 %i, %l
  br i1 %done, label %out, label %loop
out:
  %r = xor i32 %m, %i
  %po = getelementptr i32, ptr addrspace(1) %out, i32 %t
  store i32 %r, ptr addrspace(1) %po, align 4
  ret void
"""

SWITCH = """\
  %k = and i32 %t, 7
  switch i32 %k, label %d [ i32 0, label %a
    i32 3, label %b
    i32 5, label %a ]
a:
  br label %j
b:
  %w2 = mul i32 %t, 3
  br label %j
d:
  %e = icmp ugt i32 %t, 100
  br i1 %e, label %j, label %gone
j:
  %v = phi i32 [ 1, %a ], [ %w2, %b ], [ %t, %d ]
  %po = getelementptr i32, ptr addrspace(1) %out, i32 %t
  store i32 %v, ptr addrspace(1) %po, align 4
  ret void
gone:
  ret void
"""

TWO_LATCHES = """\
  br label %head
head:
  %i = phi i32 [ 0, %entry ], [ %i1, %next ], [ %i2, %even ]
  %a = phi i32 [ 1, %entry ], [ %a1, %next ], [ %a2, %even ]
  %go = icmp ult i32 %i, 40
  br i1 %go, label %body, label %out
body:
  %y = add i32 %i, %l
  %bit = and i32 %y, 1
  %z = icmp eq i32 %bit, 0
  br i1 %z, label %even, label %next
even:
  %a2 = add i32 %a, %i
  %i2 = add i32 %i, 3
  br label %head
next:
  %a1 = mul i32 %a, 5
  %i1 = add i32 %i, 1
  br label %head
out:
  %po = getelementptr i32, ptr addrspace(1) %out, i32 %t
  store i32 %a, ptr addrspace(1) %po, align 4
  ret void
"""


@pytest.mark.parametrize("body", [LANE_LOOP, SWITCH, TWO_LATCHES], ids=["lane_loop", "switch", "two_latches"])
@pytest.mark.parametrize("block", [256, 100, 7])
def test_divergent_control_flow_agrees(body: str, block: int) -> None:
    both(kernel(body), grid=3, block=block, args=[np.zeros(256, np.int32)])


def test_waves_of_32_lanes_agree() -> None:
    both(kernel(LANE_LOOP), grid=1, block=96, args=[np.zeros(256, np.int32)], target="gfx1100")


def test_lanes_that_left_early_do_not_count_at_a_barrier() -> None:
    body = f"""
      %early = icmp ugt i32 %t, 127
      br i1 %early, label %gone, label %stay
    gone:
      ret void
    stay:
{FENCED_BARRIER}
      %po = getelementptr i32, ptr addrspace(1) %out, i32 %t
      store i32 %t, ptr addrspace(1) %po, align 4
      ret void
    """
    both(kernel(body), grid=2, block=256, args=[np.zeros(256, np.int32)])


def test_waves_at_different_barriers_are_left_to_the_numpy_engine() -> None:
    body = f"""
      %low = icmp ult i32 %w, 2
      br i1 %low, label %one, label %two
    one:
{FENCED_BARRIER}
      br label %end
    two:
{FENCED_BARRIER}
      br label %end
    end:
      %po = getelementptr i32, ptr addrspace(1) %out, i32 %t
      store i32 %t, ptr addrspace(1) %po, align 4
      ret void
    """
    out = np.zeros(256, np.int32)
    report = simulate(kernel(body), grid=1, block=256, args=[out], checks="none", engine="jit")
    assert (out == np.arange(256)).all()
    assert report.engine == "numpy"
    assert "lanes diverged around a barrier" in report.engine_note


def test_a_grid_of_three_axes_and_many_batches_agree() -> None:
    body = """\
      %x = call i32 @llvm.amdgcn.workgroup.id.x()
      %y = call i32 @llvm.amdgcn.workgroup.id.y()
      %z = call i32 @llvm.amdgcn.workgroup.id.z()
      %ty = call i32 @llvm.amdgcn.workitem.id.y()
      %zy = mul i32 %z, 11
      %zy1 = add i32 %zy, %y
      %g0 = mul i32 %zy1, 7
      %g = add i32 %g0, %x
      %r0 = mul i32 %g, 8
      %r1 = mul i32 %ty, 4
      %r2 = add i32 %r0, %r1
      %r = add i32 %r2, %t
      %po = getelementptr i32, ptr addrspace(1) %out, i32 %r
      store i32 %r, ptr addrspace(1) %po, align 4
      ret void
    """
    out = np.zeros(7 * 11 * 3 * 8, np.int32)
    seen: list[int] = []
    both(kernel(body), grid=(7, 11, 3), block=(4, 2), args=[out], progress=lambda done, total: seen.append(done))
    assert (out == np.arange(out.size)).all()
    assert seen[-1] == 7 * 11 * 3


# ---- faults

OUTSIDE = kernel(
    "%po = getelementptr i32, ptr addrspace(1) %out, i32 %t\nstore i32 %t, ptr addrspace(1) %po, align 4\nret void"
)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (OUTSIDE, "writes 4 bytes out of bounds"),
        (exchange().replace("sub i32 255, %t", "sub i32 256, %t"), "reads 4 bytes out of bounds"),
        (kernel("%d = udiv i32 7, %t\nret void"), "division by zero"),
        (kernel("%z = icmp eq i32 %t, 5\nbr i1 %z, label %bad, label %good\nbad:\nunreachable\ngood:\nret void"),
         "control reached 'unreachable'"),
        (kernel("br label %a\na:\nbr label %a"), "an endless loop"),
    ],
    ids=["store", "lds", "division", "unreachable", "endless"],
)  # fmt: skip
def test_a_fault_is_reported_in_the_same_words(text: str, what: str) -> None:
    errors = []
    for name in ("numpy", "jit") if "endless" not in what else ("numpy", "auto"):
        out = np.zeros(255 if text is OUTSIDE else 256, np.int32)
        with pytest.raises(SimError) as caught:
            simulate(text, grid=1, block=256, args=[out], checks="none", engine=name, max_steps=20000)
        errors.append(str(caught.value))
        assert not out.any()
    assert errors[0] == errors[1]
    assert what in errors[0]


def test_a_loop_without_end_comes_back_after_max_steps() -> None:
    body = "br label %a\na:\n%i = phi i32 [ 0, %entry ], [ %j, %a ]\n%j = add i32 %i, 1\n"
    text = kernel(body + "%e = icmp eq i32 %l, 100\nbr i1 %e, label %b, label %a\nb:\nret void")
    with pytest.raises(SimError, match=r"the kernel ran 5000 blocks without an end"):
        simulate(
            text, grid=1, block=64, args=[np.zeros(1, np.int32)], checks="none", engine="jit", max_steps=5000
        )  # fmt: skip


def test_a_read_only_array_is_not_written() -> None:
    out = np.zeros(256, np.int32)
    out.flags.writeable = False
    with pytest.raises(SimError, match="store into read-only"):
        simulate(OUTSIDE, grid=1, block=256, args=[out], checks="none", engine="jit")


# ---- the choice

TICKET = kernel("%old = atomicrmw add ptr addrspace(1) %out, i32 1 monotonic\n%x = icmp eq i32 %old, 7\nret void")


def test_what_is_not_covered_is_named_before_anything_runs() -> None:
    out = np.zeros(1, np.int32)
    with pytest.raises(
        SimError,
        match=r"(?s)line \d+: the result of an atomic add.*use engine='auto' or",
    ):
        simulate(TICKET, grid=1, block=64, args=[out], checks="none", engine="jit")
    assert not out.any()


MANY = kernel("""\
  %g = call i32 @llvm.amdgcn.workgroup.id.x()
  %b = mul i32 %g, 256
  %i = add i32 %b, %t
  %po = getelementptr i32, ptr addrspace(1) %out, i32 %i
  store i32 %i, ptr addrspace(1) %po, align 4
  ret void
""")


def test_auto_takes_the_second_engine_where_nothing_needs_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    out = np.zeros(1 << 17, np.int32)
    text, launch = MANY + "; auto\n", {"grid": 512, "block": 256, "args": [out]}
    first = simulate(text, checks="none", **launch)
    assert (first.engine, first.compile_seconds) == ("numpy", 0.0)  # over in no time
    monkeypatch.setattr(engines, "_SLOW_SECONDS", 0.0)
    assert simulate(text, **launch).engine == "numpy"  # the default checkers
    report = simulate(text, checks="none", **launch)
    assert report.engine == "jit"
    assert report.compile_seconds > 0
    assert "engine: jit, host code made in" in report.render()
    monkeypatch.setattr(engines, "_SLOW_SECONDS", 1e9)
    again = simulate(text, checks="none", **launch)  # the code is there
    assert again.engine == "jit"
    assert again.compile_seconds < report.compile_seconds
    assert simulate(text, checks="none", profile=True, **launch).engine == "numpy"
    assert simulate(text, checks="none", engine="numpy", **launch).engine == "numpy"
    assert (out == np.arange(out.size)).all()


def test_the_second_engine_takes_over_between_workgroups(monkeypatch: pytest.MonkeyPatch) -> None:
    out = np.zeros(1 << 17, np.int32)
    text, launch = MANY + "; on the way\n", {"grid": 512, "block": 256, "args": [out], "checks": "none"}

    def after_a_chunk(done: int, total: int) -> None:
        monkeypatch.setattr(engines, "_SLOW_SECONDS", 0.0)

    monkeypatch.setattr(engines, "_SLOW_SECONDS", 1e9)
    report = simulate(text, progress=after_a_chunk, **launch)
    assert report.engine == "numpy, then jit"
    assert (out == np.arange(out.size)).all()
    assert report.instructions == simulate(text, engine="numpy", **launch).instructions


def test_auto_takes_the_first_engine_for_what_the_second_does_not_cover(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "_SLOW_SECONDS", 0.0)
    out = np.zeros(1, np.int32)
    report = simulate(TICKET, grid=4, block=64, args=[out], checks="none")
    assert report.engine == "numpy"
    assert "the result of an atomic add" in report.engine_note
    assert out[0] == 256


def test_large_memory_is_given_back() -> None:
    out = np.zeros(1 << 25, np.int32)
    simulate(MANY, grid=64, block=256, args=[out], checks="none", engine="jit")
    assert (out[: 64 * 256] == np.arange(64 * 256)).all()
    assert not out[64 * 256 :].any()
    assert engine._ARENA.size == 0
    both(exchange(), grid=1, block=256, args=[np.zeros(256, np.int32)])


def test_a_worker_that_dies_is_no_end(monkeypatch: pytest.MonkeyPatch) -> None:
    def die(*args: object) -> None:
        raise CodegenError("the worker that runs host code ended its process with SIGSEGV", fix="use engine='numpy'")

    monkeypatch.setattr(host, "run", die)
    monkeypatch.setattr(engines, "_SLOW_SECONDS", 0.0)
    out = np.zeros(256, np.int32)
    report = simulate(exchange(), grid=1, block=256, args=[out], checks="none")
    assert report.engine == "numpy"
    assert "ended its process with SIGSEGV" in report.engine_note
    assert (out == np.arange(256)[::-1]).all()
    monkeypatch.setattr(host, "load", die)  # the next launch does not even try
    assert "SIGSEGV" in simulate(exchange(), grid=1, block=256, args=[out], checks="none").engine_note
    with pytest.raises(CodegenError, match="use engine='numpy'"):
        simulate(exchange(), grid=1, block=256, args=[out], checks="none", engine="jit")


def test_code_is_loaded_again_into_a_new_worker() -> None:
    out = np.zeros(256, np.int32)
    both(exchange(), grid=1, block=256, args=[out])
    default_pool().close()
    _, report = both(exchange(), grid=1, block=256, args=[out])
    assert report.compile_seconds > 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"engine": "fast"}, "(?s)unknown engine 'fast'.*use one of: auto, numpy, jit"),
        ({"engine": "jit"}, "(?s)engine='jit' runs without checkers.*pass checks='none'"),
        ({"engine": "jit", "checks": "none", "profile": True}, "(?s)profile=True.*pass checks='none'"),
    ],
)
def test_an_engine_that_cannot_be_had_is_an_error(options: dict[str, object], message: str) -> None:
    with pytest.raises((SimError, LaunchError), match=message):
        simulate(exchange(), grid=1, block=256, args=[np.zeros(256, np.int32)], **options)  # type: ignore[arg-type]


def test_a_form_that_no_rule_knows_is_declined_and_not_a_crash() -> None:
    text = kernel("""\
      %a = call <2 x half> @llvm.amdgcn.permlane16.v2f16(<2 x half> zeroinitializer, <2 x half> zeroinitializer,
 i32 0, i32 0, i1 false, i1 false)
      ret void
    """).replace(",\n i32", ", i32")
    with pytest.raises(SimError, match=r"line \d+: llvm\.amdgcn\.permlane16\.v2f16 with an operand of type <2 x half>"):
        simulate(text, grid=1, block=64, args=[np.zeros(1, np.int32)], checks="none", engine="jit")


def test_auto_tries_again_after_a_fault_but_not_after_it_cannot_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "_SLOW_SECONDS", 0.0)
    text = OUTSIDE + "; tried\n"
    with pytest.raises(SimError, match="out of bounds"):
        simulate(text, grid=1, block=256, args=[np.zeros(255, np.int32)], checks="none")
    assert simulate(text, grid=1, block=256, args=[np.zeros(256, np.int32)], checks="none").engine == "jit"
    spin = kernel("br label %a\na:\n%i = phi i32 [ 0, %entry ], [ %j, %a ]\n%j = add i32 %i, 1\n"
                  "%e = icmp eq i32 %i, 3000\nbr i1 %e, label %b, label %a\nb:\nret void")  # fmt: skip
    launch = {"grid": 1, "block": 64, "args": [np.zeros(1, np.int32)], "checks": "none"}
    with pytest.raises(SimError, match="without an end"):
        simulate(spin, max_steps=1000, **launch)
    assert "ran too many blocks" in simulate(spin, **launch).engine_note
