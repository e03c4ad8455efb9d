"""Planted bugs: each is found and named at its line; the clean kernels run without a report."""

from __future__ import annotations

import numpy as np
import pytest

from flyllvm.errors import SimError
from flyllvm.sim import simulate
from tests.sim.kernels import FENCED_BARRIER, LDS, STORE_OUT, exchange, gemm, kernel, line_of

pytestmark = pytest.mark.sim
BARE = "  call void @llvm.amdgcn.s.barrier()\n"


def _run(text: str, args: list, grid: object = 1, block: object = 256, **options: object) -> object:
    return simulate(text, grid=grid, block=block, args=args, source_name="k.ll", **options)


def _fault(text: str, args: list, line: str, message: str, **options: object) -> SimError:
    """Runs a faulty kernel; the error names the line that holds ``line`` and says ``message``."""
    before = [a.copy() if isinstance(a, np.ndarray) else a for a in args]
    with pytest.raises(SimError, match=message) as caught:
        _run(text, args, **options)
    assert str(caught.value).startswith(f"k.ll:{line_of(text, line)}: ")
    assert all(np.array_equal(a, b) for a, b in zip(args, before, strict=True)), "a failed run changed an argument"
    return caught.value


def _out() -> list:
    return [np.zeros(256, np.uint32)]


# ---- LDS ordering


def test_exchange_through_lds_with_fenced_barrier_is_clean() -> None:
    args = _out()
    _run(exchange(), args)
    assert np.array_equal(args[0], 255 - np.arange(256))


def test_missing_barrier_is_a_race() -> None:
    error = _fault(exchange(before=""), _out(), "%v = load", "LDS race on LDS byte .* of @lds")
    assert "store i32 %t" in str(error) and "put a barrier between" in str(error)


def test_barrier_without_fences_is_a_race() -> None:
    _fault(exchange(before=BARE), _out(), "%v = load", "a bare s.barrier orders execution, not memory")


def test_release_fence_alone_is_a_race() -> None:
    _fault(exchange(before='  fence syncscope("workgroup") release\n' + BARE), _out(), "%v = load", "LDS race")


def test_acquire_fence_alone_is_a_race() -> None:
    _fault(exchange(before=BARE + '  fence syncscope("workgroup") acquire\n'), _out(), "%v = load", "LDS race")


def test_fences_of_a_wave_do_not_order_waves() -> None:
    narrow = FENCED_BARRIER.replace("workgroup", "wavefront")
    _fault(exchange(before=narrow), _out(), "%v = load", "LDS race")


@pytest.mark.parametrize("scope", ["agent", "workgroup-one-as", "", "agent-one-as"])
def test_wider_fences_order_waves(scope: str) -> None:
    text = FENCED_BARRIER.replace('syncscope("workgroup")', f'syncscope("{scope}")' if scope else "")
    args = _out()
    _run(exchange(before=text), args)
    assert args[0][0] == 255


def test_explicit_wait_before_the_barrier_orders_lds() -> None:
    args = _out()
    _run(exchange(before="  call void @llvm.amdgcn.s.waitcnt(i32 49279)\n" + BARE), args)  # lgkmcnt(0)
    assert args[0][0] == 255


def test_wait_for_global_memory_alone_does_not_order_lds() -> None:
    wait = "  call void @llvm.amdgcn.s.waitcnt(i32 3952)\n"  # vmcnt(0)
    _fault(exchange(before=wait + BARE), _out(), "%v = load", "LDS race")


def test_access_between_release_and_barrier_is_not_released() -> None:
    text = exchange(before='  fence syncscope("workgroup") release\n').replace("%m = sub", "%m0 = sub", 1)
    late = (
        '  fence syncscope("workgroup") release\n'
        "  store i32 %t, ptr addrspace(3) %p, align 4\n" + BARE + '  fence syncscope("workgroup") acquire\n'
    )
    text = exchange(before=late)
    _fault(text, _out(), "%v = load", "LDS race")


def test_one_wave_needs_no_barrier() -> None:
    text = exchange(before="").replace("sub i32 255", "sub i32 63")
    args = [np.zeros(64, np.uint32)]
    _run(text, args, block=64)
    assert np.array_equal(args[0], 63 - np.arange(64))


def test_overwriting_what_another_wave_still_reads_is_a_race() -> None:
    again = exchange().replace("  ret void", "  store i32 0, ptr addrspace(3) %p, align 4 ; again\n  ret void")
    _fault(again, _out(), "; again", "LDS race")


def test_waves_that_store_the_same_value_to_one_place_do_no_harm() -> None:
    body = "store i32 7, ptr addrspace(3) @lds, align 16\n" + FENCED_BARRIER
    body += "%v = load i32, ptr addrspace(3) @lds, align 16\n" + STORE_OUT.format(value="%v")
    args = _out()
    _run(kernel(body, module=LDS), args)
    assert (args[0] == 7).all()


def test_waves_that_store_different_values_to_one_place_race() -> None:
    body = "store i32 %w, ptr addrspace(3) @lds, align 16\nret void"
    _fault(kernel(body, module=LDS), _out(), "store i32 %w", "LDS race on LDS byte 0")


def test_neighbouring_halves_written_by_different_waves_do_not_race() -> None:
    body = """
    %h = trunc i32 %t to i16
    %pair = and i32 %l, 63
    %x = mul i32 %pair, 4
    %y = add i32 %x, %w
    %p = getelementptr i16, ptr addrspace(3) @lds, i32 %y
    store i16 %h, ptr addrspace(3) %p, align 2
    ret void"""
    _run(kernel(body, module=LDS), _out())


def test_lds_atomics_of_several_waves_do_not_race() -> None:
    body = (
        "%first = icmp eq i32 %t, 0\nbr i1 %first, label %init, label %go\ninit:\n"
        "store i32 0, ptr addrspace(3) @lds, align 16\nbr label %go\ngo:\n" + FENCED_BARRIER
        + "%old = atomicrmw add ptr addrspace(3) @lds, i32 1 syncscope(\"workgroup\") monotonic\n" + FENCED_BARRIER
        + "%v = load i32, ptr addrspace(3) @lds, align 16\n" + STORE_OUT.format(value="%v")
    )  # fmt: skip
    args = _out()
    _run(kernel(body, module=LDS), args)
    assert (args[0] == 256).all()


def test_plain_read_races_with_an_atomic_of_another_wave() -> None:
    body = (
        "store i32 0, ptr addrspace(3) @lds, align 16\n" + FENCED_BARRIER
        + "%old = atomicrmw add ptr addrspace(3) @lds, i32 1 monotonic\n"
        + "%v = load i32, ptr addrspace(3) @lds, align 16\n" + STORE_OUT.format(value="%v")
    )  # fmt: skip
    _fault(kernel(body, module=LDS), _out(), "%v = load", "LDS race")


# ---- the GEMM


def _gemm_args(k: int = 32) -> list:
    rng = np.random.default_rng(0)
    a, b = rng.integers(-4, 5, (32, k)).astype(np.float16), rng.integers(-4, 5, (16, k)).astype(np.float16)
    return [a, b, np.zeros((32, 16), np.float32), k]


def _right(args: list) -> bool:
    return bool(np.array_equal(args[2], args[0].astype(np.float32) @ args[1].astype(np.float32).T))


@pytest.mark.parametrize("k", [16, 32, 80])
def test_clean_gemm_is_right_and_without_report(k: int) -> None:
    args = _gemm_args(k)
    _run(gemm(), args, block=128)
    assert _right(args)


def test_missing_barrier_after_the_store_is_found() -> None:
    _fault(gemm(barrier1=""), _gemm_args(), "%fb = load", "LDS race", block=128)


def test_missing_barrier_before_the_next_store_is_found() -> None:
    _fault(gemm(barrier2=""), _gemm_args(), "store <4 x half> %vb", "LDS race", block=128)


def test_barrier_too_early_is_found() -> None:
    text = gemm(barrier1="").replace("  br i1 %copies", FENCED_BARRIER + "  br i1 %copies")
    _fault(text, _gemm_args(), "%fb = load", "LDS race", block=128)


def test_lds_tile_one_column_short_is_found() -> None:
    text = gemm().replace("[512 x half]", "[480 x half]")
    _fault(text, _gemm_args(), "store <4 x half> %va", "writes 8 bytes out of bounds, at byte 984 of @la", block=128)


def _first_wrong(text: str, args: list) -> str | None:
    """Who stored the first wrong element of a run whose result is wrong."""
    report = _run(text, args, block=128, checks="all")
    assert not _right(args)
    wrong = args[2] != args[0].astype(np.float32) @ args[1].astype(np.float32).T
    return report.writer_of(2, int(np.flatnonzero(wrong)[0]) * 4)


def test_swizzle_on_the_write_only_is_found_at_the_read() -> None:
    text = gemm(read_swizzle=False)
    args = _gemm_args()
    warnings = _run(text, args, block=128, checks="all").warnings
    assert not _right(args)
    for operand, warning in zip("ab", warnings, strict=True):
        assert warning.startswith(f"k.ll:{line_of(text, f'%f{operand} = load')}: '%f{operand} = load")
        assert "LDS is read in another order than it was written" in warning
        assert f"stored by 'store <4 x half> %v{operand}" in warning
    for k in (16, 32, 80):
        assert not _run(gemm(), _gemm_args(k), block=128, checks="all").warnings


def test_swizzle_on_the_write_only_gives_a_wrong_result_and_who_stored_it() -> None:
    text = gemm(read_swizzle=False)
    said = _first_wrong(text, _gemm_args())
    assert said is not None and "store float %c" in said and f":{line_of(text, 'store float %c0')}, " in said
    reads = [f"k.ll:{line_of(text, f'%f{x} = load')}" for x in "ab"]
    assert said.endswith(f"; it is made from the LDS reads at {', '.join(reads)}")


def test_wrong_predicate_reads_past_the_buffer() -> None:
    _fault(gemm(tail="ule"), _gemm_args(), "%vb = load", "reads 8 bytes out of bounds, at byte 1024 of argument 1 %b",
           block=128)  # fmt: skip


def test_swapped_rows_and_columns_give_a_wrong_result_and_are_found_where_they_collide() -> None:
    args = _gemm_args(16)
    _run(gemm(transpose_c=True), args, block=128)
    assert not _right(args)
    # Rows of the one wave and columns of the other are the same elements.
    _fault(gemm(transpose_c=True), _gemm_args(16), "store float %c0", "race on byte", block=128, checks="all")


def test_who_stored_what_is_kept_where_it_was_asked_for() -> None:
    args = _gemm_args()
    with pytest.raises(SimError, match='simulate with checks="all"'):
        _run(gemm(), args, block=128).writer_of(2, 0)
    kept = _run(gemm(), args, block=128, checks="all")
    assert "store float %c0" in str(kept.writer_of(2, 0)) and kept.writer_of(0, 0) is None


def test_uninitialised_accumulator_is_found() -> None:
    _fault(gemm(accumulator="poison"), _gemm_args(), "store float %c0", "the stored value is poison", block=128)


def test_misaligned_lds_read_is_found() -> None:
    _fault(gemm(align=16), _gemm_args(), "%fa = load", "is not a multiple of 16, as the instruction's align promises",
           block=128)  # fmt: skip


def test_matrix_instruction_with_inactive_lanes_is_refused() -> None:
    _fault(gemm(), _gemm_args(), "%d = call", "matrix instruction with inactive lanes", block=127)


# ---- memory


def _guarded(pred: str) -> str:
    return kernel(
        f"%c = icmp {pred} i32 %t, %n\nbr i1 %c, label %go, label %end\ngo:\n"
        "%p = getelementptr float, ptr addrspace(1) %x, i32 %t\n%v = load float, ptr addrspace(1) %p, align 4\n"
        "%d = fadd float %v, 1.0\nstore float %d, ptr addrspace(1) %p, align 4\nbr label %end\nend:\nret void",
        params="ptr addrspace(1) %x, i32 %n",
    )


def test_predicated_tail_is_clean() -> None:
    x = np.arange(100, dtype=np.float32)
    report = _run(_guarded("ult"), [x, 100])
    assert np.array_equal(x, np.arange(100) + 1)
    assert report.divergences == 1


def test_predicate_off_by_one_is_found_with_lane_and_byte() -> None:
    error = _fault(_guarded("ule"), [np.zeros(100, np.float32), 100], "%v = load", "reads 4 bytes out of bounds")
    assert "at byte 400 of argument 0 %x (400 bytes)" in str(error)
    assert "workgroup (0, 0, 0), wave 1, lane 36" in str(error)


def test_store_out_of_bounds_is_found() -> None:
    body = "%p = getelementptr i32, ptr addrspace(1) %out, i32 %t\nstore i32 1, ptr addrspace(1) %p\nret void"
    _fault(kernel(body), [np.zeros(255, np.uint32)], "store i32 1", "writes 4 bytes out of bounds")


def test_null_pointer_is_named() -> None:
    body = "%v = load i32, ptr addrspace(1) %out\nret void"
    _fault(kernel(body), [None], "%v = load", "null pointer")


def test_misaligned_global_access_is_found() -> None:
    body = "%p = getelementptr i8, ptr addrspace(1) %out, i32 2\n%v = load i32, ptr addrspace(1) %p, align 4\nret void"
    _fault(kernel(body), _out(), "%v = load", "byte 2 of argument 0 %out .* is not a multiple of 4")


def test_store_into_a_read_only_array_is_found() -> None:
    out = np.zeros(256, np.uint32)
    out.flags.writeable = False
    _fault(kernel("store i32 1, ptr addrspace(1) %out\nret void"), [out], "store i32 1", "read-only argument 0")


def test_uninitialised_lds_is_found() -> None:
    body = "%v = load i32, ptr addrspace(3) @lds, align 4\n" + STORE_OUT.format(value="%v")
    _fault(kernel(body, module=LDS), _out(), "%v = load", "read of uninitialised LDS byte 0 of @lds")


def test_uninitialised_stack_is_found() -> None:
    body = "%a = alloca i32, align 4, addrspace(5)\n%v = load i32, ptr addrspace(5) %a, align 4\n"
    _fault(kernel(body + STORE_OUT.format(value="%v")), _out(), "%v = load", "private memory that was never written")


def test_stack_overrun_is_found() -> None:
    body = """
    %a = alloca [4 x i32], align 4, addrspace(5)
    %p = getelementptr i32, ptr addrspace(5) %a, i32 4
    store i32 1, ptr addrspace(5) %p, align 4
    ret void"""
    _fault(kernel(body), _out(), "store i32 1", r"writes 4 bytes out of bounds, at byte 16 of %a \(16 bytes\)")


# ---- arithmetic and control


def test_division_by_zero_is_found_in_running_lanes_only() -> None:
    guarded = """
    %z = icmp eq i32 %t, 0
    br i1 %z, label %end, label %go
    go:
    %q = udiv i32 1000, %t
    br label %end
    end:
    ret void"""
    _run(kernel(guarded), _out())
    _fault(kernel("%q = udiv i32 1000, %t\nret void"), _out(), "%q = udiv", "division by zero.*wave 0, lane 0")


def test_unreachable_is_found() -> None:
    body = "%c = icmp eq i32 %t, 3\nbr i1 %c, label %bad, label %end\nbad:\nunreachable\nend:\nret void"
    _fault(kernel(body), _out(), "unreachable", "control reached 'unreachable'.*wave 0, lane 3")


def test_branch_on_poison_is_found() -> None:
    body = "%c = icmp eq i32 %t, undef\nbr i1 %c, label %a, label %b\na:\nret void\nb:\nret void"
    _fault(kernel(body), _out(), "br i1 %c", "the branch depends on poison")


def test_frozen_poison_and_unselected_poison_are_clean() -> None:
    body = """
    %f = freeze i32 poison
    %g = and i32 %f, 0
    %c = icmp ult i32 %t, 300
    %s = select i1 %c, i32 %t, i32 poison
    %b = icmp ult i32 %t, 32
    %n = select i1 %b, i32 %t, i32 0
    %h = shl i32 1, %t
    %k = select i1 %b, i32 %h, i32 %n
    %v = add i32 %s, %g
    %u = xor i32 %v, %k
    """ + STORE_OUT.format(value="%u")
    args = _out()
    _run(kernel(body), args)
    t = np.arange(256, dtype=np.int64)
    assert np.array_equal(args[0], t ^ np.where(t < 32, 1 << (t % 32), 0))


def test_poison_is_followed_through_structs() -> None:
    build = """
    %s0 = insertvalue { i32, i32 } poison, i32 %t, 0
    br label %go
    go:
    %s = phi { i32, i32 } [ %s0, %entry ]
    %v = extractvalue { i32, i32 } %s, PART
    """ + STORE_OUT.format(value="%v")
    _run(kernel(build.replace("PART", "0")), _out())
    _fault(kernel(build.replace("PART", "1")), _out(), "store i32 %v", "the stored value is poison")


def test_checks_can_be_switched_off_with_the_same_results() -> None:
    for checks in ("none", "default", "all"):
        args = _gemm_args()
        _run(gemm(), args, block=128, checks=checks)
        assert _right(args)
    _run(exchange(before=BARE), _out(), checks="none")
    with pytest.raises(SimError, match="use one of: none, default, all"):
        _run(exchange(), _out(), checks="some")


def test_shift_by_the_width_is_poison() -> None:
    body = "%h = shl i32 1, %t\n" + STORE_OUT.format(value="%h")
    _fault(kernel(body), _out(), "store i32 %h", "the stored value is poison.*lanes 32-63")


def test_wave_that_waits_for_another_wave_of_the_workgroup_gets_its_turn() -> None:
    """Wave 0 spins on an LDS flag that wave 3 sets after it left the branch."""
    body = (
        """
    %first = icmp eq i32 %t, 0
    br i1 %first, label %init, label %start
    init:
    store i32 0, ptr addrspace(3) @lds, align 16
    br label %start
    start:
    """
        + FENCED_BARRIER
        + """
    %spins = icmp ult i32 %t, 64
    br i1 %spins, label %spin, label %set
    spin:
    %f = load atomic i32, ptr addrspace(3) @lds syncscope("workgroup") acquire, align 4
    %go = icmp eq i32 %f, 0
    br i1 %go, label %spin, label %end
    set:
    store atomic i32 1, ptr addrspace(3) @lds syncscope("workgroup") release, align 4
    br label %end
    end:
    """
        + STORE_OUT.format(value="%t")
    )
    args = _out()
    _run(kernel(body, module=LDS), args)
    assert np.array_equal(args[0], np.arange(256))


def _message(order_store: str, order_load: str, fences: tuple[str, str] = ("", "")) -> str:
    """Wave 3 writes data, then a flag; wave 0 waits for the flag and reads the data."""
    return kernel(
        f"""
    %first = icmp eq i32 %t, 0
    br i1 %first, label %init, label %start
    init:
    store i32 0, ptr addrspace(3) @lds, align 16
    br label %start
    start:
    {FENCED_BARRIER}
    %p = getelementptr i32, ptr addrspace(3) @lds, i32 64
    %reads = icmp eq i32 %t, 0
    br i1 %reads, label %spin, label %other
    spin:
    %f = load atomic i32, ptr addrspace(3) @lds syncscope("workgroup") {order_load}, align 4
    %go = icmp eq i32 %f, 0
    br i1 %go, label %spin, label %read
    read:
    {fences[1]}
    %d = load i32, ptr addrspace(3) %p, align 4
    store i32 %d, ptr addrspace(1) %out, align 4
    br label %end
    other:
    %writes = icmp eq i32 %t, 255
    br i1 %writes, label %set, label %end
    set:
    store i32 77, ptr addrspace(3) %p, align 4
    {fences[0]}
    store atomic i32 1, ptr addrspace(3) @lds syncscope("workgroup") {order_store}, align 4
    br label %end
    end:
    ret void""",
        module=LDS,
    )


def test_release_and_acquire_on_a_flag_pass_data_between_waves() -> None:
    fences = ('fence syncscope("workgroup") release', 'fence syncscope("workgroup") acquire')
    for text in (_message("release", "acquire"), _message("monotonic", "monotonic", fences)):
        args = _out()
        _run(text, args)
        assert args[0][0] == 77


@pytest.mark.parametrize(("store", "load"), [("monotonic", "acquire"), ("release", "monotonic")])
def test_flag_without_release_or_acquire_is_a_race(store: str, load: str) -> None:
    _fault(_message(store, load), _out(), "%d = load", "LDS race")


# ---- barriers and divergence


def _branch_around(condition: str, then: str) -> str:
    return kernel(
        f"%c = icmp {condition}\nbr i1 %c, label %then, label %join\nthen:\n{then}br label %join\njoin:\n"
        + STORE_OUT.format(value="%t")
    )


def test_barrier_in_a_branch_of_some_lanes_is_found() -> None:
    text = _branch_around("ult i32 %l, 32", BARE)
    _fault(text, _out(), "s.barrier", "live lanes are missing at the barrier")


def test_barrier_in_a_branch_of_some_waves_is_found() -> None:
    text = _branch_around("ult i32 %t, 64", BARE)
    error = _fault(text, _out(), "s.barrier", "live lanes are missing at the barrier")
    assert "ran past it and returned" in str(error)


def test_barrier_in_a_branch_that_all_lanes_take_is_clean() -> None:
    _run(_branch_around("ult i32 %t, 256", BARE), _out())


def test_lanes_that_have_returned_do_not_count_at_a_barrier() -> None:
    body = f"%c = icmp ult i32 %t, 100\nbr i1 %c, label %go, label %end\ngo:\n{BARE}"
    body += "%po = getelementptr i32, ptr addrspace(1) %out, i32 %t\nstore i32 1, ptr addrspace(1) %po\n"
    body += "br label %end\nend:\nret void"
    args = _out()
    _run(kernel(body), args)
    assert int(args[0].sum()) == 100


def test_waves_that_write_and_return_early_do_not_count_at_a_barrier() -> None:
    body = f"""
    %po = getelementptr i32, ptr addrspace(1) %out, i32 %t
    %c = icmp ult i32 %t, 128
    br i1 %c, label %go, label %early
    early:
    store i32 9, ptr addrspace(1) %po
    ret void
    go:
    {BARE}
    store i32 1, ptr addrspace(1) %po
    ret void"""
    args = _out()
    _run(kernel(body), args)
    assert np.array_equal(args[0], np.where(np.arange(256) < 128, 1, 9))


def test_waves_may_meet_at_different_barrier_instructions() -> None:
    """Ping-pong schedules delay half of the waves by one barrier and catch up at the end."""
    body = f"""
    %late = icmp uge i32 %t, 128
    br i1 %late, label %delay, label %loop0
    delay:
    {BARE}
    br label %loop0
    loop0:
    br label %loop
    loop:
    %i = phi i32 [ 0, %loop0 ], [ %i1, %loop ]
    %i1 = add i32 %i, 1
    {BARE}
    %more = icmp ult i32 %i1, 4
    br i1 %more, label %loop, label %after
    after:
    br i1 %late, label %end, label %catch
    catch:
    {BARE}
    br label %end
    end:
    """ + STORE_OUT.format(value="%i1")
    args = _out()
    _run(kernel(body), args)
    assert (args[0] == 4).all()


def test_loop_with_a_barrier_and_different_trip_counts_is_found() -> None:
    body = f"""
    br label %loop
    loop:
    %i = phi i32 [ 0, %entry ], [ %i1, %loop ]
    {BARE}
    %i1 = add i32 %i, 1
    %more = icmp ule i32 %i1, %w
    br i1 %more, label %loop, label %end
    end:
    """ + STORE_OUT.format(value="%i")
    _fault(kernel(body), _out(), "s.barrier", "live lanes are missing at the barrier")


def test_workgroups_of_one_chunk_may_loop_differently_around_a_barrier() -> None:
    body = f"""
    %g = call i32 @llvm.amdgcn.workgroup.id.x()
    br label %loop
    loop:
    %i = phi i32 [ 0, %entry ], [ %i1, %loop ]
    %s = phi i32 [ 0, %entry ], [ %s1, %loop ]
    %p = getelementptr i32, ptr addrspace(3) @lds, i32 %t
    store i32 %i, ptr addrspace(3) %p, align 4
    {FENCED_BARRIER}
    %m = sub i32 255, %t
    %q = getelementptr i32, ptr addrspace(3) @lds, i32 %m
    %v = load i32, ptr addrspace(3) %q, align 4
    {FENCED_BARRIER}
    %s1 = add i32 %s, %v
    %i1 = add i32 %i, 1
    %more = icmp ule i32 %i1, %g
    br i1 %more, label %loop, label %end
    end:
    %base = mul i32 %g, 256
    %at = add i32 %base, %t
    %po = getelementptr i32, ptr addrspace(1) %out, i32 %at
    store i32 %s1, ptr addrspace(1) %po, align 4
    ret void"""
    out = np.zeros((5, 256), np.uint32)
    _run(kernel(body, module=LDS), [out], grid=5)
    assert np.array_equal(out, np.repeat([[0], [1], [3], [6], [10]], 256, axis=1))


# ---- on request


def _global_store(value: str, index: str, extra: str = "") -> str:
    return kernel(
        f"""
    %g = call i32 @llvm.amdgcn.workgroup.id.x()
    %b = mul i32 %g, 256
    %i = add i32 %b, %t
    %half = lshr i32 %i, 1
    {extra}
    %po = getelementptr i32, ptr addrspace(1) %out, i32 {index}
    store i32 {value}, ptr addrspace(1) %po, align 4
    ret void"""
    )


def test_racing_stores_of_two_workgroups_are_found_on_request() -> None:
    out = [np.zeros(512, np.uint32)]
    _run(_global_store("%g", "%t"), out, grid=2)
    _fault(_global_store("%g", "%t"), out, "store i32 %g", "race on byte 0 of argument 0 %out.*workgroup",
           grid=2, checks="all")  # fmt: skip


def test_racing_stores_of_two_waves_are_found_on_request() -> None:
    _fault(_global_store("%w", "%l"), _out(), "store i32 %w", "race on byte", checks="all")


def test_read_of_what_another_workgroup_wrote_is_found_on_request() -> None:
    body = "%q = getelementptr i32, ptr addrspace(1) %out, i32 %half\n%old = load i32, ptr addrspace(1) %q"
    text = _global_store("%i", "%i", body)
    _fault(text, [np.zeros(512, np.uint32)], "store i32 %i", "race on byte .* '%old = load", grid=2, checks="all")


def test_disjoint_equal_and_atomic_global_writes_are_clean_on_request() -> None:
    for text in (
        _global_store("%i", "%i"),
        _global_store("7", "%t"),
        _global_store("%i", "%i", "%o = atomicrmw add ptr addrspace(1) %count, i32 1 monotonic").replace(
            "ptr addrspace(1) %out)", "ptr addrspace(1) %out, ptr addrspace(1) %count)"
        ),
    ):
        args = [np.zeros(512, np.uint32)]
        if "%count)" in text:
            args.append(np.zeros(1, np.uint32))
        _run(text, args, grid=2, checks="all")


def test_offset_that_wraps_32_bits_is_found_on_request() -> None:
    body = "%big = mul i32 %t, 100000000\n%o = and i32 %big, 255\n" + STORE_OUT.format(value="0").replace("%t", "%o")
    _run(kernel(body), _out())
    _fault(kernel(body), _out(), "%big = mul", "address arithmetic overflows 32 bits.*lanes 43-63", checks="all")


def test_negative_offsets_do_not_count_as_wrapping() -> None:
    body = "%o = add i32 %t, -1\n%m = mul i32 %o, -1\n%n = sub i32 254, %m\n%k = and i32 %n, 255\n"
    _run(kernel(body + STORE_OUT.format(value="0").replace("%t", "%k")), _out(), checks="all")


def test_broken_no_wrap_promises_are_found_on_request() -> None:
    for flag, number in (("nuw", -1), ("nsw", 2147483647)):
        text = kernel(f"%x = add {flag} i32 %t, {number}\n" + STORE_OUT.format(value="%x"))
        _run(text, _out())
        _fault(text, _out(), "%x = add", f"overflows, which '{flag}' promises", checks="all")


def test_arrays_that_overlap_against_noalias_are_a_warning_on_request() -> None:
    params = "ptr addrspace(1) noalias %in, ptr addrspace(1) %out"
    body = "%pi = getelementptr i32, ptr addrspace(1) %in, i32 %t\n%x = load i32, ptr addrspace(1) %pi\n"
    body = kernel(body + STORE_OUT.format(value="%x"), params)
    both = np.zeros(512, np.uint32)
    said = _run(body, [both[:256], both[:256]], checks="all").warnings
    assert len(said) == 1 and said[0].startswith(
        "argument 0 %in / argument 1 %out overlap and are written, although %in"
    )
    assert not _run(body, [both[:256], both[256:]], checks="all").warnings
    assert not _run(body.replace("noalias ", ""), [both[:256], both[:256]], checks="all").warnings
    assert not _run(body, [both[:256], both[:256]]).warnings


@pytest.mark.parametrize(
    ("value", "promised"),
    [
        ("%i = call range(i32 0, 10) i32 @llvm.amdgcn.workitem.id.x()", r"\[0, 10\)"),
        ("%i = call i32 @llvm.amdgcn.workitem.id.x(), !range !7", r"\[0, 10\) or \[12, 20\)"),
        ("%p = getelementptr i32, ptr addrspace(1) %out, i32 %t\n%j = sub i32 4, %t\n"
         "store i32 %j, ptr addrspace(1) %p\n%i = load i32, ptr addrspace(1) %p, align 4, !range !8", r"\[-5, 5\)"),
    ],
)  # fmt: skip
def test_results_outside_of_their_range_on_request(value: str, promised: str) -> None:
    text = kernel(value + "\n" + STORE_OUT.format(value="%i").replace("%po", "%pq"))
    text += "!7 = !{i32 0, i32 10, i32 12, i32 20}\n!8 = !{i32 -5, i32 5}\n"
    _run(text, _out())
    _run(text, _out(), block=10, checks="all")
    _fault(text, _out(), "%i = ", f"the result is outside of {promised}, the range that is promised", checks="all")


def test_readfirstlane_of_differing_values_is_a_warning_on_request() -> None:
    body = "%f = call i32 @llvm.amdgcn.readfirstlane.i32(i32 %t)\n" + STORE_OUT.format(value="%f")
    report = _run(kernel(body), _out(), checks="all")
    assert len(report.warnings) == 1 and "differs between lanes" in report.render()
    assert not _run(kernel(body.replace("i32 %t)", "i32 %w)", 1)), _out(), checks="all").warnings


@pytest.mark.parametrize(
    ("use", "alike"),
    [("and i32 %f, 192", True), ("lshr i32 %f, 6", True), ("and i32 %f, 224", False), ("lshr i32 %f, 5", False),
     ("add i32 %f, 0", False), ("and i32 %f, -64", True), ("and i32 %f, %t", False),
     ("shl i32 %f, 4\n%u = and i32 %v, 1024", True), ("shl i32 %f, 4\n%u = and i32 %v, 256", False),
     ("lshr i32 %f, 3\n%u = and i32 %v, 24", True), ("lshr i32 %f, 3\n%u = and i32 %v, 12", False)],
)  # fmt: skip
def test_readfirstlane_of_the_bits_that_count_alone_warns(use: str, alike: bool) -> None:
    """Compilers take the number of a wave from the first lane's work item."""
    body = f"%f = call i32 @llvm.amdgcn.readfirstlane.i32(i32 %t)\n%v = {use}\n" + STORE_OUT.format(value="%v")
    if "%u" in use:
        body = body.replace("store i32 %v", "store i32 %u")
    assert bool(_run(kernel(body), _out(), checks="all").warnings) != alike


@pytest.mark.parametrize(("against", "warns"), [("%t", False), ("%u", False), ("0", True), ("%w", True)])
def test_a_loop_over_the_values_of_lanes_is_no_warning(against: str, warns: bool) -> None:
    body = (
        "%a = zext i32 %t to i64\nbr label %next\nnext:\n%f = call i32 @llvm.amdgcn.readfirstlane.i32(i32 %t)\n"
        "%g = bitcast i32 %f to <2 x i16>\n%h = bitcast <2 x i16> %g to i32\n%u = trunc i64 %a to i32\n"
        f"%same = icmp eq i32 %h, {against}\n%more = add i32 %h, 0\nbr i1 %same, label %end, label %other\nother:\n"
        "%once = icmp ult i32 %t, 300\nbr i1 %once, label %end, label %next\nend:\n" + STORE_OUT.format(value="%t")
    )
    assert bool(_run(kernel(body), _out(), checks="all").warnings) == warns


@pytest.mark.parametrize("index", ["5", "%t"])
def test_element_outside_a_vector_is_found(index: str) -> None:
    body = (
        f"%v = insertelement <4 x i32> zeroinitializer, i32 %t, i32 1\n%e = extractelement <4 x i32> %v, i32 {index}\n"
    )
    _fault(kernel(body + STORE_OUT.format(value="%e")), _out(), "%e = ", "outside a vector of 4 elements")
    body = f"%v = insertelement <4 x i32> zeroinitializer, i32 %t, i32 {index}\n"
    _fault(kernel(body + "ret void"), _out(), "%v = ", "outside a vector of 4 elements")


@pytest.mark.parametrize(("kind", "place", "clean"), [
    ("<8 x i8>", 7, True), ("<8 x i8>", 4, True), ("<8 x i8>", 3, False), ("<4 x i16>", 2, True),
    ("<4 x i16>", 1, False), ("<1 x i64>", 0, False),
])  # fmt: skip
def test_a_bitcast_keeps_poison_to_the_bits_it_was_in(kind: str, place: int, clean: bool) -> None:
    part = kind.split()[2][:-1]
    to_i32 = "trunc" if part == "i64" else "zext"
    body = (
        "%v = insertelement <2 x i32> poison, i32 %t, i32 1\n"
        f"%b = bitcast <2 x i32> %v to {kind}\n"
        f"%e = extractelement {kind} %b, i32 {place}\n"
        f"%x = {to_i32} {part} %e to i32\n"
    ) + STORE_OUT.format(value="%x")
    if not clean:
        _fault(kernel(body), _out(), "store i32 %x", "the stored value is poison")
        return
    args = _out()
    _run(kernel(body), args)
    bits = int(part[1:])
    low = bits * place - 32
    assert np.array_equal(args[0], np.arange(256) >> low & (1 << bits) - 1)


def test_a_bitcast_of_narrow_elements_joins_their_poison() -> None:
    body = (
        "%h = trunc i32 %t to i16\n"
        "%v = insertelement <4 x i16> poison, i16 %h, i32 0\n"
        "%full = insertelement <4 x i16> %v, i16 %h, i32 PART\n"
        "%b = bitcast <4 x i16> %full to <2 x i32>\n"
        "%x = extractelement <2 x i32> %b, i32 0\n"
    ) + STORE_OUT.format(value="%x")
    args = _out()
    _run(kernel(body.replace("PART", "1")), args)
    assert np.array_equal(args[0], np.arange(256) * 0x10001)
    _fault(kernel(body.replace("PART", "2")), _out(), "store i32 %x", "the stored value is poison")
