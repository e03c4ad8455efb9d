"""Packed bytes, nibbles and halves; groups of lanes; clusters; loads and atomics in the form of intrinsics."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from flyllvm.errors import SimError
from flyllvm.sim import simulate
from tests.sim.kernels import FENCED_BARRIER, LDS, STORE_OUT, kernel
from tests.sim.test_lanes import run

pytestmark = pytest.mark.sim
RNG = np.random.default_rng(12)
X, Y, Z, W = (RNG.integers(0, 2**32, 128, dtype=np.uint32) for _ in range(4))
SMALL = RNG.integers(-(2**14), 2**14, (2, 128)).astype(np.int32)


def _parts(name: str, result: str, operands: str, before: str = "") -> np.ndarray:
    """All words of a result.  Shape: ``(128, words)``."""
    count = {"i16": 1, "i32": 1, "i64": 2, "<2 x i16>": 1}.get(result) or int(result[1:].split()[0])
    words = []
    for i in range(count):
        take = {
            "i16": "%v = zext i16 %r to i32",
            "i32": "%v = add i32 %r, 0",
            "i64": f"%s = lshr i64 %r, {32 * i}\n%v = trunc i64 %s to i32",
            "<2 x i16>": "%v = bitcast <2 x i16> %r to i32",
        }.get(result, f"%v = extractelement {result} %r, i32 {i}")
        body = f"{before}\n%r = call {result} @llvm.amdgcn.{name}({operands})\n{take}"
        words.append(run(body, [X, Y, Z, W], target="gfx1250"))
    return np.stack(words, axis=1)


PAIR = "{0}0 = zext i32 {1} to i64\n{0}1 = zext i32 {2} to i64\n{0}2 = shl i64 {0}1, 32\n{0} = or i64 {0}0, {0}2\n"
VECTOR = "{0}a = insertelement <2 x i32> poison, i32 {1}, i32 0\n{0} = insertelement <2 x i32> {0}a, i32 {2}, i32 1\n"


def _bits(*words: np.ndarray) -> list[int]:
    """The words of each lane as one number."""
    return [sum(int(w[i]) << 32 * j for j, w in enumerate(words)) for i in range(128)]


@pytest.mark.parametrize(("name", "low", "high"), [("i8", -128, 127), ("u8", 0, 255)])
def test_shifted_words_are_limited_to_bytes(name: str, low: int, high: int) -> None:
    x, y = SMALL.view(np.uint32)
    got = run(f"%r = call i16 @llvm.amdgcn.ashr.pk.{name}.i32(i32 %x0, i32 %x1, i32 %x2)\n%v = zext i16 %r to i32",
              [x, y, Z], target="gfx950")  # fmt: skip
    first, second = (np.clip(s >> (Z & 31).astype(np.int32), low, high) & 0xFF for s in SMALL)
    assert np.array_equal(got, first | second << 8)


def test_a_number_becomes_a_byte_of_a_word_rounded_to_even_and_clamped() -> None:
    values = [0.5, 1.5, 2.5, 254.5, 255.5, 300, -0.4, -7, 0.0, -0.0, np.nan, np.inf, -np.inf, 1e-40, 13.49]
    numbers = np.resize(np.array(values, np.float32), 128)
    want = np.resize([0, 2, 2, 254, 255, 255, 0, 0, 0, 0, 0, 255, 0, 0, 13], 128)
    body = "%f = bitcast i32 %x0 to float\n%v = call i32 @llvm.amdgcn.cvt.pk.u8.f32(float %f, i32 %x1, i32 %x2)"
    got = run(body, [numbers.view(np.uint32), Y, Z])
    bytes_ = Z.copy().view(np.uint8).reshape(-1, 4)
    bytes_[np.arange(128), Y & 3] = want
    assert np.array_equal(got, bytes_.view(np.uint32)[:, 0])


def test_bytes_are_limited_to_nibbles() -> None:
    signed = np.clip(X.view(np.int8).reshape(-1, 4), -8, 7) & 15
    unsigned = np.minimum(X.view(np.uint8).reshape(-1, 4), 15)
    for name, want in (("i4.i8", signed), ("u4.u8", unsigned)):
        got = _parts(f"sat.pk4.{name}", "i16", "i32 %x0")[:, 0]
        assert np.array_equal(got, (want.astype(np.int64) << np.array([0, 4, 8, 12])).sum(1))


@pytest.mark.parametrize("sign", ["i16", "u16"])
@pytest.mark.parametrize("pick", ["max", "min"])
def test_halves_are_added_with_saturation_and_limited(sign: str, pick: str) -> None:
    dtype = np.dtype(sign.replace("i16", "int16").replace("u16", "uint16"))
    casts = "".join(f"%h{i} = bitcast i32 %x{i} to <2 x i16>\n" for i in range(3))
    got = _parts(
        f"pk.add.{pick}.{sign}", "<2 x i16>", ", ".join(f"<2 x i16> %h{i}" for i in range(3)) + ", i1 0", casts
    )
    x, y, z = (a.view(dtype).astype(np.int64) for a in (X, Y, Z))
    info = np.iinfo(dtype)
    want = getattr(np, pick + "imum")(np.clip(x + y, info.min, info.max), z)
    assert np.array_equal(got[:, 0].copy().view(dtype), want)


@pytest.mark.parametrize(("bits", "above", "below"), [(4, "i32", "i32"), (6, "i32", "i64"), (8, "i64", "i64")])
def test_nibbles_pick_entries_of_a_table(bits: int, above: str, below: str) -> None:
    before = PAIR.format("%m", "%x0", "%x1") + PAIR.format("%q", "%x1", "%x2") + VECTOR.format("%k", "%x2", "%x3")
    operands = f"{above} {'%m' if above == 'i64' else '%x0'}, {below} {'%q' if below == 'i64' else '%x1'}, <2 x i32> %k"
    got = _parts(f"perm.pk16.b{bits}.u4", f"<{bits // 2} x i32>", operands, before)
    low = _bits(Y, Z) if below == "i64" else _bits(Y)
    high = _bits(X, Y) if above == "i64" else _bits(X)
    shift, mask = (64 if below == "i64" else 32), (1 << bits) - 1
    for lane, picks in enumerate(_bits(Z, W)):
        table = low[lane] | high[lane] << shift
        want = sum((table >> (picks >> 4 * i & 15) * bits & mask) << bits * i for i in range(16))
        assert sum(int(w) << 32 * i for i, w in enumerate(got[lane])) == want


@pytest.mark.parametrize("name", ["qsad.pk.u16.u8", "mqsad.pk.u16.u8", "mqsad.u32.u8"])
def test_four_shifted_sums_of_absolute_differences(name: str) -> None:
    wide = name.endswith("u32.u8")
    before = PAIR.format("%m", "%x0", "%x1") + PAIR.format("%y", "%x3", "%x0")
    before += "%f0 = insertelement <4 x i32> zeroinitializer, i32 %x3, i32 1\n"
    sums, result = ("<4 x i32> %f0", "<4 x i32>") if wide else ("i64 %y", "i64")
    got = _parts(name, result, f"i64 %m, i32 %x2, {sums}", before)
    for lane, (a, old) in enumerate(zip(_bits(X, Y), _bits(W, X))):
        want = []
        for i in range(4):
            total = (int(W[lane]) if i == 1 else 0) if wide else old >> 16 * i & 0xFFFF
            for j in range(4):
                x, y = a >> 8 * (i + j) & 255, int(Z[lane]) >> 8 * j & 255
                total += 0 if y == 0 and name.startswith("m") else abs(x - y)
            want.append(total & (0xFFFFFFFF if wide else 0xFFFF))
        packed = sum(w << (32 if wide else 16) * i for i, w in enumerate(want))
        assert sum(int(w) << 32 * i for i, w in enumerate(got[lane])) == packed


def test_cube_faces() -> None:
    x, y, z = RNG.normal(size=(3, 128)).astype(np.float32)
    x[:3], y[:3], z[:3] = 1, -1, (1, 0.5, -1)  # ties: z before y before x

    def face(name: str) -> Any:
        body = "".join(f"%f{i} = bitcast i32 %x{i} to float\n" for i in range(3))
        body += (
            f"%r = call float @llvm.amdgcn.cube{name}(float %f0, float %f1, float %f2)\n%v = bitcast float %r to i32"
        )
        return run(body, [a.view(np.uint32) for a in (x, y, z)]).view(np.float32)

    for i in range(128):
        a, b, c = x[i], y[i], z[i]
        if abs(c) >= abs(a) and abs(c) >= abs(b):
            want = (5, -a, -b, 2 * c) if c < 0 else (4, a, -b, 2 * c)
        elif abs(b) >= abs(a):
            want = (3, a, -c, 2 * b) if b < 0 else (2, a, c, 2 * b)
        else:
            want = (1, c, -b, 2 * a) if a < 0 else (0, -c, -b, 2 * a)
        assert tuple(face_values[i] for face_values in (face("id"), face("sc"), face("tc"), face("ma"))) == want
        if i > 8:
            break


@pytest.mark.parametrize("width", [32, 16, 4])
def test_lanes_of_a_group_exchange(width: int) -> None:
    lane = np.arange(32)
    base, place = lane - lane % width, lane % width
    for name, amount, picked in (
        ("bcast", 5, np.full(32, 5 % width)), ("up", 3, np.where(place < 3, place, place - 3)),
        ("down", 2, np.where(place + 2 >= width, place, place + 2)), ("xor", 1, place ^ 1),
    ):  # fmt: skip
        body = f"%v = call i32 @llvm.amdgcn.permlane.{name}(i32 %x0, i32 {amount}, i32 {width})"
        got = run(body, [X], target="gfx1250").reshape(-1, 32)
        assert np.array_equal(got, X.reshape(-1, 32)[:, base + picked]), name


def test_a_difference_over_a_wave_starts_at_zero() -> None:
    body = (
        "%odd = and i32 %t, 1\n%c = icmp eq i32 %odd, 1\nbr i1 %c, label %go, label %end\ngo:\n"
        "%s = call i32 @llvm.amdgcn.wave.reduce.sub.i32(i32 %t, i32 1)\n"
        "%po = getelementptr i32, ptr addrspace(1) %out, i32 %t\nstore i32 %s, ptr addrspace(1) %po\n"
        "br label %end\nend:\nret void"
    )
    out = np.zeros(64, np.int32)
    simulate(kernel(body), grid=1, block=64, args=[out])
    assert (out[1::2] == -np.arange(1, 64, 2).sum()).all()
    body = "%f = uitofp i32 %t to float\n%r = call float @llvm.amdgcn.wave.reduce.fsub(float %f, i32 0)\n"
    got = run(body + "%v = bitcast float %r to i32").view(np.float32)
    assert (got[:64] == -np.arange(64).sum()).all()


def test_whole_quads_are_filled() -> None:
    values = np.array([0, 1, 0x80, 0x01010000] * 32, np.uint32)
    assert list(run("%v = call i32 @llvm.amdgcn.s.wqm.i32(i32 %x0)", [values])[:4]) == [0, 0xF, 0xF0, 0x0F0F0000]


# ---- memory


def _global(body: str, data: np.ndarray, **options: Any) -> np.ndarray:
    out = np.zeros(64, np.uint32)
    simulate(kernel(body, "ptr addrspace(1) %out, ptr addrspace(1) %x"), grid=1, block=64, args=[out, data],
             target="gfx1250", **options)  # fmt: skip
    return out


@pytest.mark.parametrize(
    "call",
    ["cluster.load.b32.i32(ptr addrspace(1) %p, i32 0, i32 3)",
     "global.load.monitor.b32.i32(ptr addrspace(1) %p, i32 0)",
     'cooperative.atomic.load.32x4B.p1(ptr addrspace(1) %p, i32 0, metadata !"agent")'],
)  # fmt: skip
def test_loads_of_other_names(call: str) -> None:
    body = f"%p = getelementptr i32, ptr addrspace(1) %x, i32 %t\n%v = call i32 @llvm.amdgcn.{call}\n"
    data = X[:64].copy()
    assert np.array_equal(_global(body + STORE_OUT.format(value="%v"), data), data)
    with pytest.raises(SimError, match="out of bounds, at byte 200"):
        _global(body + STORE_OUT.format(value="%v"), data[:50].copy())


def test_cooperative_stores() -> None:
    body = (
        "%p = getelementptr i64, ptr addrspace(1) %x, i32 %t\n"
        "%v = insertelement <2 x i32> zeroinitializer, i32 %t, i32 1\n"
        "call void @llvm.amdgcn.cooperative.atomic.store.16x8B.p1("
        'ptr addrspace(1) %p, <2 x i32> %v, i32 0, metadata !"")\n'
        "ret void"
    )
    data = np.zeros(64, np.uint64)
    _global(body, data)
    assert np.array_equal(data >> np.uint64(32), np.arange(64))


def test_atomic_minimum_and_maximum_of_numbers() -> None:
    body = (
        "%f = uitofp i32 %t to float\n"
        "%o = call float @llvm.amdgcn.global.atomic.fmax.num.f32.p1.f32(ptr addrspace(1) %x, float %f)\nret void"
    )
    data = np.full(1, 7, np.float32)
    _global(body, data)
    assert data[0] == 63
    _global(body.replace("fmax", "fmin"), data)
    assert data[0] == 0


def test_saturating_buffer_subtraction() -> None:
    body = (
        "%r = call ptr addrspace(8) @llvm.amdgcn.make.buffer.rsrc.p8.p1("
        "ptr addrspace(1) %x, i16 0, i64 4, i32 159744)\n"
        "%o = call i32 @llvm.amdgcn.raw.ptr.buffer.atomic.sub.clamp.u32.i32("
        "i32 1, ptr addrspace(8) %r, i32 0, i32 0, i32 0)\nret void"
    )
    data = np.full(1, 40, np.uint32)
    _global(body, data)
    assert data[0] == 0


def test_append_and_consume_count_running_lanes() -> None:
    body = (
        "%z = icmp eq i32 %t, 0\nbr i1 %z, label %init, label %go\ninit:\nstore i32 100, ptr addrspace(3) @lds\n"
        "br label %go\ngo:\n" + FENCED_BARRIER + "%c = icmp ult i32 %l, 10\nbr i1 %c, label %few, label %end\nfew:\n"
        "%v = call i32 @llvm.amdgcn.ds.append.p3(ptr addrspace(3) @lds, i1 false)\n"
        "%w2 = call i32 @llvm.amdgcn.ds.consume.p3(ptr addrspace(3) @lds, i1 false)\n"
        "%s = shl i32 %w2, 16\n%u = or i32 %s, %v\n"
        "%po = getelementptr i32, ptr addrspace(1) %out, i32 %t\nstore i32 %u, ptr addrspace(1) %po\n"
        "br label %end\nend:\nret void"
    )
    out = np.zeros(128, np.uint32)
    simulate(kernel(body, module=LDS), grid=1, block=128, args=[out])
    assert (out[:10] & 0xFFFF == 100).all() and (out[64:74] & 0xFFFF == 110).all()
    assert (out[:10] >> 16 == 120).all() and (out[64:74] >> 16 == 110).all() and not out[10:64].any()


# ---- clusters


def _cluster(name: str, grid: tuple[int, int, int], attrs: str = '"amdgpu-cluster-dims"="2,1,2"') -> np.ndarray:
    body = f"""
    %x = call i32 @llvm.amdgcn.workgroup.id.x()
    %y = call i32 @llvm.amdgcn.workgroup.id.y()
    %z = call i32 @llvm.amdgcn.workgroup.id.z()
    %a = mul i32 %z, {grid[1]}
    %b = add i32 %a, %y
    %d = mul i32 %b, {grid[0]}
    %e = add i32 %d, %x
    %v = call i32 @llvm.amdgcn.{name}()
    %po = getelementptr i32, ptr addrspace(1) %out, i32 %e
    store i32 %v, ptr addrspace(1) %po
    ret void"""
    out = np.zeros(grid[::-1], np.uint32)
    simulate(kernel(body, attrs=attrs), grid=grid, block=1, args=[out], target="gfx1250")
    return out


def test_ids_of_clusters() -> None:
    grid = (4, 3, 2)
    z, y, x = np.indices(grid[::-1])
    for name, want in (
        ("cluster.id.x", x // 2), ("cluster.id.y", y), ("cluster.id.z", z // 2), ("cluster.workgroup.id.x", x % 2),
        ("cluster.workgroup.id.z", z % 2), ("cluster.workgroup.max.id.x", 1), ("cluster.workgroup.max.id.y", 0),
        ("cluster.workgroup.flat.id", x % 2 + 2 * (z % 2)), ("cluster.workgroup.max.flat.id", 3),
    ):  # fmt: skip
        assert np.array_equal(_cluster(name, grid), np.broadcast_to(want, x.shape)), name
    assert np.array_equal(_cluster("cluster.id.x", grid, ""), x)
    with pytest.raises(SimError, match="launch whole clusters"):
        _cluster("cluster.id.x", (3, 3, 2))
    with pytest.raises(SimError, match='give the kernel the attribute "amdgpu-cluster-dims"'):
        _cluster("cluster.id.x", grid, '"amdgpu-cluster-dims"="1024,1024,1024"')
