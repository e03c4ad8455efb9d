"""The second engine on several threads: results, counts and faults of one thread."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from flyllvm import host
from flyllvm.codegen import worker_jit
from flyllvm.errors import SimError
from flyllvm.sim import engines, simulate
from flyllvm.sim.jit import threads
from flyllvm.sim.memory import Region, Space
from flyllvm.sim.run import prepare
from tests.sim.engines import compare, copies
from tests.sim.kernels import FENCED_BARRIER, LDS, kernel

pytestmark = [pytest.mark.llvm, pytest.mark.sim]

#: Sums the workgroup's number of steps through LDS, so that workgroups take different times and share nothing.
LOOP = f"""
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %n, %loop ]
  %s = phi i32 [ 1, %entry ], [ %m, %loop ]
  %q = getelementptr i32, ptr addrspace(3) @lds, i32 %t
  store i32 %s, ptr addrspace(3) %q, align 4
  {FENCED_BARRIER}
  %other = xor i32 %t, 63
  %r = getelementptr i32, ptr addrspace(3) @lds, i32 %other
  %v = load i32, ptr addrspace(3) %r, align 4
  {FENCED_BARRIER}
  %a = mul i32 %v, 1664525
  %m = add i32 %a, %t
  %n = add i32 %i, 1
  %c = icmp ule i32 %n, %g
  br i1 %c, label %loop, label %done
done:
  %row = mul i32 %g, 64
  %at = add i32 %row, %t
  %o = getelementptr i32, ptr addrspace(1) %out, i32 %at
"""
HEAD = "%g = call i32 @llvm.amdgcn.workgroup.id.x()\n"


def loop(end: str, body: str = LOOP) -> str:
    """The kernel that ends so."""
    return kernel(f"{HEAD}{body}{end}\nret void\n", module=LDS)


SUMS = loop("store i32 %s, ptr addrspace(1) %o, align 4")


class Jobs:
    """Counts the threads of every call of host code."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.counts: list[int] = []
        run = host.run

        def counting(key: str, path: str, size: int, jobs: Any, timeout: float) -> Any:
            self.counts.append(len(jobs))
            return run(key, path, size, jobs, timeout)

        monkeypatch.setattr(host, "run", counting)


def run(text: str, count: int | None, groups: int, args: list[Any], **options: Any) -> Any:
    return simulate(text, grid=groups, block=64, args=args, checks="none", engine="jit", threads=count, **options)


@pytest.mark.parametrize("count", [2, 3, 7])
@pytest.mark.parametrize("groups", [1, 2, 5, 64, 333])
def test_results_and_counts_are_those_of_one_thread(count: int, groups: int, monkeypatch: pytest.MonkeyPatch) -> None:
    args = [np.zeros(64 * groups, np.int32)]
    mine = copies(args)
    first = run(SUMS, 1, groups, args)
    jobs = Jobs(monkeypatch)
    second = run(SUMS, count, groups, mine)
    assert set(jobs.counts) == {min(count, groups)}
    compare(args, mine, first, second)
    assert mine[0].any()


def test_clipped_lanes_and_divergences_are_counted_once() -> None:
    text = loop("""
      %bit = and i32 %t, 1
      %even = icmp eq i32 %bit, 0
      br i1 %even, label %some, label %end
    some:
      %rsrc = call ptr addrspace(8) @llvm.amdgcn.make.buffer.rsrc.p8.p1(ptr addrspace(1) %out, i16 0, i64 128, i32 0)
      %far = mul i32 %t, 4
      call void @llvm.amdgcn.raw.ptr.buffer.store.i32(i32 0, ptr addrspace(8) %rsrc, i32 %far, i32 256, i32 0)
      br label %end
    end:
      store i32 %s, ptr addrspace(1) %o, align 4
    """)
    reports = [run(text, count, 40, [np.zeros(64 * 40, np.int32)]) for count in (1, 2)]
    assert reports[0].clipped and reports[0].divergences == 40
    assert reports[0].clipped == reports[1].clipped and reports[0].divergences == reports[1].divergences


def test_a_fault_is_reported_as_with_one_thread_and_changes_nothing() -> None:
    text = loop("""
      %late = icmp ugt i32 %g, 20
      %far = select i1 %late, i64 1000000, i64 0
      %p = getelementptr i8, ptr addrspace(1) %o, i64 %far
      store i32 %s, ptr addrspace(1) %p, align 4
    """)
    said = []
    for count in (1, 2):
        out = np.zeros(64 * 30, np.int32)
        with pytest.raises(SimError) as caught:
            run(text, count, 30, [out])
        said.append(str(caught.value))
        assert not out.any()
    assert said[0] == said[1]


@pytest.mark.parametrize(("fault", "endless", "words"), [(9, 30, "a fault"), (30, 9, "too many blocks")])
def test_the_reason_is_that_of_the_first_workgroup(fault: int, endless: int, words: str) -> None:
    text = kernel(f"""{HEAD}
      %bad = icmp eq i32 %g, {fault}
      %zero = select i1 %bad, i32 0, i32 1
      %never = udiv i32 %g, %zero
      %long = icmp eq i32 %g, {endless}
      %most = select i1 %long, i32 100000000, i32 3
      br label %loop
    loop:
      %i = phi i32 [ 0, %entry ], [ %n, %loop ]
      %n = add i32 %i, 1
      %c = icmp ult i32 %n, %most
      br i1 %c, label %loop, label %done
    done:
      ret void
    """)
    for count in (1, 2):
        out = np.zeros(64, np.int32)
        setup = prepare(text, None, grid=40, block=64, args=[out], checks="none", max_steps=1000)
        runner = engines.Choice("jit", setup, "none", False, count).runner
        assert runner is not None and not runner.run(0, 40, None)
        assert words in runner.reason


def test_workgroups_that_write_the_same_bytes_run_on_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    text = loop("store i32 %g, ptr addrspace(1) %o, align 4", LOOP.replace("mul i32 %g, 64", "mul i32 %g, 0"))
    out, jobs = np.zeros(64, np.int32), Jobs(monkeypatch)
    report = run(text, 2, 40, [out])
    assert (out == 39).all() and report.instructions["s.barrier"] == 2 * sum(range(1, 41))
    assert 2 in jobs.counts and jobs.counts[-1] == 1
    jobs.counts.clear()
    run(text, 2, 40, [out])
    assert set(jobs.counts) == {1}  # it is known now


def test_atomic_operations_on_global_memory_run_on_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    text = loop("%old = atomicrmw add ptr addrspace(1) %out, i32 1 monotonic")
    out, jobs = np.zeros(64, np.int32), Jobs(monkeypatch)
    run(text, 2, 40, [out])
    assert out[0] == 64 * 40 and set(jobs.counts) == {1}


def test_short_kernels_run_on_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    text = kernel(f"""{HEAD}
      %row = mul i32 %g, 64
      %at = add i32 %row, %t
      %o = getelementptr i32, ptr addrspace(1) %out, i32 %at
      store i32 %at, ptr addrspace(1) %o, align 4
      ret void
    """)
    out, jobs = np.zeros(64 * 4000, np.int32), Jobs(monkeypatch)
    run(text, 2, 4000, [out])
    assert (out == np.arange(out.size)).all() and set(jobs.counts) == {1}


def test_copies_of_large_memories_limit_the_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    out, jobs = np.zeros(64 * 40, np.int32), Jobs(monkeypatch)
    monkeypatch.setattr(threads, "_MOST_BYTES", 3 * 40_000)
    run(SUMS, 8, 40, [out])
    assert set(jobs.counts) <= {2, 3, 4, 5, 6}
    monkeypatch.setattr(threads, "_MOST_BYTES", 1000)
    jobs.counts.clear()
    run(SUMS, 8, 40, [out])
    assert set(jobs.counts) == {1}


def test_the_number_of_threads_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    out, jobs = np.zeros(64 * 40, np.int32), Jobs(monkeypatch)
    monkeypatch.delenv("FLYLLVM_SIM_THREADS", raising=False)
    run(SUMS, None, 40, [out])
    assert set(jobs.counts) == {1}
    jobs.counts.clear()
    monkeypatch.setenv("FLYLLVM_SIM_THREADS", "3")
    run(SUMS, None, 40, [out])
    assert set(jobs.counts) == {3}


@pytest.mark.parametrize("words", ["0", "257", "many", "-1"])
def test_a_wrong_number_of_threads_is_an_error(words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLYLLVM_SIM_THREADS", words)
    with pytest.raises(SimError, match=rf"FLYLLVM_SIM_THREADS = '{words}'.*\n.*use 1 to 256"):
        run(SUMS, None, 1, [np.zeros(64, np.int32)])
    with pytest.raises(SimError, match=r"threads = '0'.*\n.*use 1 to 256"):
        run(SUMS, 0, 1, [np.zeros(64, np.int32)])


# ---- parts of it


@given(st.integers(1, 9), st.integers(0, 9), st.integers(1, 5000), st.lists(st.integers(1, 600), min_size=1))
def test_a_plan_gives_every_workgroup_to_one_thread_however_it_is_cut(
    count: int, first: int, groups: int, sizes: list[int]
) -> None:
    owners = []
    for batches in (sizes, [10**6]):
        plan, owner, number = threads.Plan(count, first, first + groups), {}, 0
        while plan.at < plan.total:
            for thread, ranges in enumerate(plan.batch(batches[number % len(batches)])):
                assert ranges == sorted(ranges)
                for at, size in ranges:
                    for group in range(at, at + size):
                        assert owner.setdefault(group, thread) == thread
            number += 1
        assert sorted(owner) == list(range(first, first + groups))
        owners.append(owner)
    assert owners[0] == owners[1]


def test_memories_become_one_unless_two_changed_a_byte() -> None:
    regions = [Region("a", 4096, 700_000), Region("b", 4096 + 1_000_000, 64)]
    space = Space("global", 0, regions, 2_000_000, 1)
    space.data[:] = np.random.default_rng(0).integers(0, 255, space.data.size)
    before = space.data.copy()
    mine, other = before.copy(), before.copy()
    mine[4096:400_000] += 1
    other[400_000 : 4096 + 700_000] += 1
    other[4096 + 1_000_000] += 1
    want = before.copy()
    want[4096 : 4096 + 700_000] += 1
    want[4096 + 1_000_000] += 1
    mine[399_999] += 1
    other[399_999] += 2
    flags = [[True, False], [True, True]]
    assert not threads.merge(space, flags, [mine, other])
    assert (space.data == before).all() and not regions[0].written
    mine[399_999], other[399_999] = before[399_999] + 1, before[399_999]
    assert threads.merge(space, flags, [mine, other])
    assert (space.data == want).all() and regions[0].written and regions[1].written


def test_jobs_run_one_after_the_other_where_the_system_gives_no_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    class Code:
        def run(self, state: int, control: int, memory: int, ranges: list[Any]) -> tuple[int, int]:
            ran.append((state, control, memory))
            return len(ranges), state

    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    ran: list[tuple[int, int, int]] = []
    monkeypatch.setattr(threading.Thread, "start", refuse)
    jobs = [(0, 10, [[0, 1]]), (100, 110, []), (200, 210, [])]
    code: Any = Code()
    assert worker_jit._side_by_side(code, 1000, [1, 2, 3], jobs) == [(1, 1), (0, 2), (0, 3)]
    assert ran == [(1, 1000, 1010), (2, 1100, 1110), (3, 1200, 1210)]
