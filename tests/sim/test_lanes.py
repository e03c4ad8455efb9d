"""Intrinsics between lanes, against NumPy over the wave."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from flyllvm.errors import SimError
from flyllvm.sim import simulate
from tests.sim.kernels import STORE_OUT, kernel

pytestmark = pytest.mark.sim
LANE = np.arange(64)


def run(body: str, inputs: list[Any] | None = None, block: int = 128, target: str = "gfx942", **kw: Any) -> Any:
    """Output of a kernel that sets ``%v`` (i32); ``%x0``, ``%x1``... are the inputs at ``%t``."""
    inputs = inputs or []
    loads = "".join(
        f"%p{i} = getelementptr i32, ptr addrspace(1) %in{i}, i32 %t\n%x{i} = load i32, ptr addrspace(1) %p{i}\n"
        for i in range(len(inputs))
    )
    params = ", ".join([*(f"ptr addrspace(1) %in{i}" for i in range(len(inputs))), "ptr addrspace(1) %out"])
    out = np.zeros(block, np.uint32)
    simulate(kernel(loads + body + "\n" + STORE_OUT.format(value="%v"), params), grid=1, block=block,
             args=[*inputs, out], target=target, **kw)  # fmt: skip
    return out


def _values(n: int = 128) -> Any:
    return np.random.default_rng(5).integers(0, 2**32, n, dtype=np.uint32)


def _per_wave(a: Any, size: int = 64) -> Any:
    return a.reshape(-1, size)


def test_ids_and_lane_counts() -> None:
    assert np.array_equal(run("%v = add i32 %t, 0"), np.arange(128))
    body = "%a = call i32 @llvm.amdgcn.mbcnt.lo(i32 -1, i32 0)\n%v = call i32 @llvm.amdgcn.mbcnt.hi(i32 -1, i32 %a)"
    assert np.array_equal(run(body), np.tile(LANE, 2))
    assert (run("%v = call i32 @llvm.amdgcn.wavefrontsize()") == 64).all()


def test_three_dimensional_ids() -> None:
    body = """
    %y = call i32 @llvm.amdgcn.workitem.id.y()
    %z = call i32 @llvm.amdgcn.workitem.id.z()
    %gx = call i32 @llvm.amdgcn.workgroup.id.x()
    %gy = call i32 @llvm.amdgcn.workgroup.id.y()
    %gz = call i32 @llvm.amdgcn.workgroup.id.z()
    %a0 = mul i32 %gz, 5
    %a1 = add i32 %a0, %gy
    %a2 = mul i32 %a1, 3
    %a3 = add i32 %a2, %gx
    %b0 = mul i32 %a3, 2
    %b1 = add i32 %b0, %z
    %b2 = mul i32 %b1, 4
    %b3 = add i32 %b2, %y
    %b4 = mul i32 %b3, 8
    %b5 = add i32 %b4, %t
    %po = getelementptr i32, ptr addrspace(1) %out, i32 %b5
    store i32 %b5, ptr addrspace(1) %po
    ret void"""
    out = np.zeros(3 * 5 * 2 * 64, np.uint32)
    simulate(kernel(body), grid=(3, 5, 2), block=(8, 4, 2), args=[out])
    assert np.array_equal(out, np.arange(out.size))


def test_readfirstlane_reads_the_first_running_lane() -> None:
    assert np.array_equal(run("%v = call i32 @llvm.amdgcn.readfirstlane.i32(i32 %t)"), np.repeat([0, 64], 64))
    body = """
    %c = icmp ugt i32 %l, 9
    br i1 %c, label %yes, label %end
    yes:
    %f = call i32 @llvm.amdgcn.readfirstlane.i32(i32 %t)
    br label %end
    end:
    %v = phi i32 [ %f, %yes ], [ 0, %entry ]"""
    assert np.array_equal(_per_wave(run(body))[1], np.where(LANE > 9, 74, 0))


def test_readlane_and_writelane() -> None:
    x = _values()
    assert np.array_equal(
        run("%v = call i32 @llvm.amdgcn.readlane.i32(i32 %x0, i32 5)", [x]), np.repeat(x[[5, 69]], 64)
    )
    got = run("%v = call i32 @llvm.amdgcn.writelane.i32(i32 7, i32 3, i32 %x0)", [x])
    want = x.copy()
    want[[3, 67]] = 7
    assert np.array_equal(got, want)


def test_bpermute_permute_and_swizzle() -> None:
    x, index = _values(), np.tile((LANE * 5 + 3) % 64, 2).astype(np.uint32)
    body = "%a = shl i32 %x1, 2\n%v = call i32 @llvm.amdgcn.ds.{}(i32 %a, i32 %x0)"
    waves = _per_wave(x)
    assert np.array_equal(run(body.format("bpermute"), [x, index]), waves[:, index[:64]].ravel())
    pushed = np.zeros_like(waves)
    pushed[:, index[:64]] = waves
    assert np.array_equal(run(body.format("permute"), [x, index]), pushed.ravel())
    for pattern, source in {
        0x041F: LANE ^ 1, 0x7C1F: LANE ^ 31, 0x801B: LANE ^ 3, 0x0018: LANE & ~7,
    }.items():  # fmt: skip
        got = run(f"%v = call i32 @llvm.amdgcn.ds.swizzle(i32 %x0, i32 {pattern})", [x])
        assert np.array_equal(got, waves[:, source].ravel()), hex(pattern)


@pytest.mark.parametrize(
    ("control", "source"),
    [
        (0xB1, LANE ^ 1), (0x4E, LANE ^ 2), (0x1B, LANE ^ 3),
        (0x101, np.where(LANE % 16 < 15, LANE + 1, -1)), (0x112, np.where(LANE % 16 >= 2, LANE - 2, -1)),
        (0x121, LANE // 16 * 16 + (LANE - 1) % 16), (0x140, LANE ^ 15), (0x141, LANE ^ 7),
        (0x138, LANE - 1), (0x13C, (LANE - 1) % 64), (0x130, np.where(LANE < 63, LANE + 1, -1)),
        (0x142, np.where(LANE >= 16, LANE // 16 * 16 - 1, -1)), (0x143, np.where(LANE >= 32, 31, -1)),
    ],
)  # fmt: skip
def test_dpp_controls(control: int, source: Any) -> None:
    x = _values()
    for bound, rows in (("true", 15), ("false", 15), ("false", 10)):
        got = run(
            "%v = call i32 @llvm.amdgcn.update.dpp.i32"
            f"(i32 77, i32 %x0, i32 {control}, i32 {rows}, i32 15, i1 {bound})",
            [x],
        )
        want = np.where(source >= 0, _per_wave(x)[:, np.maximum(source, 0)], 0 if bound == "true" else 77)
        want = np.where((rows >> (LANE // 16)) & 1, want, 77)
        assert np.array_equal(_per_wave(got), want)


def test_dpp_keeps_poison_of_lanes_without_a_source() -> None:
    move = "%d = call i32 @llvm.amdgcn.update.dpp.i32(i32 poison, i32 %t, i32 273, i32 15, i32 15, i1 false)\n"
    body = move + "%v = call i32 @llvm.amdgcn.readlane.i32(i32 %d, i32 63)"
    assert np.array_equal(run(body), np.repeat([62, 126], 64))
    with pytest.raises(SimError, match=r"the stored value is poison.*lanes 0, 16, 32, 48"):
        run(move + "%v = add i32 %d, 0")


def test_unknown_dpp_control_is_refused() -> None:
    with pytest.raises(SimError, match="see the DPP controls"):
        run("%v = call i32 @llvm.amdgcn.update.dpp.i32(i32 0, i32 %t, i32 511, i32 15, i32 15, i1 false)")


def test_ballot_counts_running_lanes_only() -> None:
    body = """
    %odd = and i32 %t, 1
    %o = icmp eq i32 %odd, 1
    %c = icmp ult i32 %l, 8
    br i1 %c, label %yes, label %end
    yes:
    %b = call i64 @llvm.amdgcn.ballot.i64(i1 %o)
    %b32 = trunc i64 %b to i32
    br label %end
    end:
    %v = phi i32 [ %b32, %yes ], [ 0, %entry ]"""
    assert np.array_equal(_per_wave(run(body))[0], np.where(LANE < 8, 0xAA, 0))


def test_compare_ballots() -> None:
    body = "%m = call i64 @llvm.amdgcn.icmp.i64.i32(i32 %l, i32 3, i32 36)\n%v = trunc i64 %m to i32"
    assert (run(body) == 7).all()


@pytest.mark.parametrize("target", ["gfx1100", "gfx1200"])
def test_waves_of_32_lanes(target: str) -> None:
    body = "%v = call i32 @llvm.amdgcn.readfirstlane.i32(i32 %t)"
    assert np.array_equal(run(body, target=target), np.arange(128) // 32 * 32)
    assert np.array_equal(run(body, target=target, wave_size=64), np.arange(128) // 64 * 64)


def test_permlane16_and_x16() -> None:
    x = _values()
    for name, flip in (("permlane16", 0), ("permlanex16", 1)):
        low, high = 0xFEDCBA98 - (1 << 32), 0x76543210
        got = run(
            f"%v = call i32 @llvm.amdgcn.{name}.i32(i32 0, i32 %x0, i32 {low}, i32 {high}, i1 false, i1 false)", [x],
            target="gfx1100",
        )  # fmt: skip
        lane = np.arange(32)
        source = ((lane // 16) ^ flip) * 16 + (lane % 16 + 8) % 16
        assert np.array_equal(_per_wave(got, 32), _per_wave(x, 32)[:, source]), name


def test_permlane_swap_on_gfx950() -> None:
    x, y = _values(), _values()[::-1].copy()
    for width in (16, 32):
        body = (
            f"%s = call {{i32, i32}} @llvm.amdgcn.permlane{width}.swap(i32 %x0, i32 %x1, i1 false, i1 false)\n"
            "%v = extractvalue {i32, i32} %s, PART"
        )
        odd = (LANE // width) % 2 == 1
        a, b = _per_wave(x), _per_wave(y)
        first = np.where(odd, b[:, LANE - width * odd], a)
        second = np.where(odd, b, a[:, LANE + width * ~odd])
        for part, want in ((0, first), (1, second)):
            got = run(body.replace("PART", str(part)), [x, y], target="gfx950")
            assert np.array_equal(_per_wave(got), want)


def test_wave_reductions() -> None:
    x = _values()
    for name, fn in {"umax": np.max, "umin": np.min, "add": np.sum, "xor": np.bitwise_xor.reduce}.items():
        got = run(f"%v = call i32 @llvm.amdgcn.wave.reduce.{name}.i32(i32 %x0, i32 0)", [x])
        want = np.array([fn(w) & 0xFFFFFFFF for w in _per_wave(x).astype(np.uint64)], np.uint64).astype(np.uint32)
        assert np.array_equal(got, np.repeat(want, 64)), name


def test_bit_operations_of_the_hardware() -> None:
    x, y = _values(), np.roll(_values(), 3)
    cases = {
        "%v = call i32 @llvm.amdgcn.perm(i32 %x0, i32 %x1, i32 84148994)": (y >> 16) | (x << 16),  # 0x05040302
        "%v = call i32 @llvm.amdgcn.ubfe.i32(i32 %x0, i32 5, i32 7)": x >> 5 & 127,
        "%v = call i32 @llvm.amdgcn.sbfe.i32(i32 %x0, i32 5, i32 7)":
            (((x >> 5 & 127).astype(np.int64) ^ 64) - 64).astype(np.uint32),
        "%v = call i32 @llvm.amdgcn.alignbyte(i32 %x0, i32 %x1, i32 3)": (y >> 24) | (x << 8),
        "%v = call i32 @llvm.amdgcn.mul.u24(i32 %x0, i32 %x1)":
            ((x & 0xFFFFFF).astype(np.uint64) * (y & 0xFFFFFF)).astype(np.uint32),
    }  # fmt: skip
    for body, want in cases.items():
        assert np.array_equal(run(body, [x, y]), want.astype(np.uint32)), body


def test_packed_conversions() -> None:
    x = np.random.default_rng(2).normal(size=128).astype(np.float32) * 1000
    body = (
        "%f = bitcast i32 %x0 to float\n%h = call <2 x half> @llvm.amdgcn.cvt.pkrtz(float %f, float 1.0)\n"
        "%v = bitcast <2 x half> %h to i32"
    )
    got = run(body, [x.view(np.uint32)])
    half = (got & 0xFFFF).astype(np.uint16).view(np.float16).astype(np.float32)
    step = np.abs(np.nextafter(half.astype(np.float16), np.float16(np.inf)).astype(np.float32) - half)
    assert ((np.abs(half) <= np.abs(x)) & (np.abs(x - half) < step * 1.01)).all()
    assert (got >> 16 == 0x3C00).all()


def test_waves_with_different_work_meet_again() -> None:
    body = """
    br label %loop
    loop:
    %i = phi i32 [ 0, %entry ], [ %i1, %next ]
    %s = phi i32 [ 0, %entry ], [ %s2, %next ]
    %bit = and i32 %i, 1
    %odd = icmp eq i32 %bit, 1
    br i1 %odd, label %a, label %b
    a:
    %s1 = add i32 %s, %i
    br label %next
    b:
    %p = mul i32 %s, 3
    br label %next
    next:
    %s2 = phi i32 [ %s1, %a ], [ %p, %b ]
    %i1 = add i32 %i, 1
    %more = icmp ult i32 %i1, %l
    br i1 %more, label %loop, label %out
    out:
    %v = call i32 @llvm.amdgcn.readlane.i32(i32 %s2, i32 63)"""
    total = 0
    for i in range(63):
        total = (total + i if i & 1 else total * 3) & 0xFFFFFFFF
    assert (run(body) == total).all()


def test_permlane_idx_gen_makes_the_address_that_bpermute_takes() -> None:
    lane = np.arange(32)
    for width in (1, 2, 8, 32, 64):
        picked = np.arange(32, dtype=np.uint32) * 3 + 1
        body = f"%v = call i32 @llvm.amdgcn.permlane.idx.gen(i32 %x0, i32 {width})"
        place = (lane & ~(width - 1)) + (picked & 63 & (width - 1))
        assert np.array_equal(run(body, [picked], 32, "gfx1250"), 4 * place)
        if width <= 32:
            body = body.replace("%v", "%a") + "\n%v = call i32 @llvm.amdgcn.ds.bpermute(i32 %a, i32 %t)"
            assert np.array_equal(run(body, [picked], 32, "gfx1250"), place)
    with pytest.raises(SimError, match="give a power of two"):
        run("%v = call i32 @llvm.amdgcn.permlane.idx.gen(i32 %t, i32 12)", [], 32, "gfx1250")


@pytest.mark.parametrize(
    "use",
    ["%b = call i32 @llvm.amdgcn.ballot.i32(i1 true)\n%v = add i32 %b, 0\n",
     "%v = call i32 @llvm.amdgcn.icmp.i32.i32(i32 %t, i32 3, i32 32)\n",
     "%b = call i1 @llvm.amdgcn.inverse.ballot.i32(i32 7)\n%v = zext i1 %b to i32\n"],
)  # fmt: skip
def test_masks_without_room_for_all_lanes_are_refused(use: str) -> None:
    text = kernel(use + STORE_OUT.format(value="%v"))
    simulate(text, grid=1, block=32, args=[np.zeros(32, np.uint32)], target="gfx1100")
    with pytest.raises(SimError, match=r"a mask of 32 lanes, waves have 64\n.*use the form of i64"):
        simulate(text, grid=1, block=64, args=[np.zeros(64, np.uint32)], target="gfx942")
