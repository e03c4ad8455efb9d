"""AMD names: descriptors and their limits, waits, scheduling, conversions, atoms of every target."""

from __future__ import annotations

import numpy as np
import pytest

import flyllvm.compiler as flyc
import flyllvm.expr as fx
from flyllvm.errors import AtomError, FlyError, TargetError, TraceError
from flyllvm.expr.rocdl.waits import encode_waitcnt

from .kernels import Tracing, elementwise


def pointer(k: Tracing, dtype: type[fx.Numeric] = fx.Int8) -> fx.Pointer:
    return fx.PointerSpec(dtype, 16).declare(k.kernel, "p", {})


# --- descriptors ---------------------------------------------------------------------------------


def test_extents_above_the_limit_are_refused_by_name() -> None:
    with Tracing() as k:
        p = pointer(k)
        fx.rocdl.make_buffer_ptr(p, 2**32 - 4)
        for size in (2**32, 2**32 + 4, -1):
            with pytest.raises(TraceError, match=f"a buffer of {size} bytes") as e:
                fx.rocdl.make_buffer_ptr(p, size)
            assert "4294967295 bytes" in str(e.value)
        big = p.view(fx.make_layout((2**16, 2**16), (2**16, 1)))
        with pytest.raises(TraceError, match="a buffer of 4294967296 bytes"):
            fx.rocdl.make_buffer_tensor(big)
        fx.rocdl.make_buffer_tensor(big, max_size=True)
        with pytest.raises(TraceError, match="pass a pointer to global memory"):
            fx.rocdl.make_buffer_ptr(fx.shared_memory(fx.Int8, 16), 16)
        with pytest.raises(TraceError, match="use make_buffer_ptr"):
            fx.rocdl.get_buffer_rsrc(p)


def test_records_are_derived_from_the_layout() -> None:
    with Tracing() as k:
        fx.rocdl.make_buffer_tensor(pointer(k, fx.Float16).view(fx.make_layout((4, 10), (16, 1))))
        fx.rocdl.make_buffer_tensor(pointer(k, fx.Float4E2M1FN).view(fx.make_layout(33, 1)))
        records = [op.operands[2].static_value() for op in k.kernel.walk() if op.name == "fly.make_ptr"]
        assert records == [(3 * 16 + 10) * 2, 17]


@pytest.mark.parametrize(("arch", "flags"), [("gfx942", 0x27000), ("gfx1100", 0x31027000), ("gfx1250", 0)])
def test_flags_turn_the_bounds_check_on(arch: str, flags: int) -> None:
    with Tracing(arch) as k:
        fx.rocdl.make_buffer_ptr(pointer(k), 64)
        (made,) = [op for op in k.kernel.walk() if op.name == "fly.make_ptr"]
        assert made.operands[3].static_value() == flags


def test_offsets_that_cannot_be_encoded_are_refused() -> None:
    with Tracing() as k:
        buffer = fx.rocdl.make_buffer_ptr(pointer(k), 64)
        for offset in (2**31 + 16, -16):
            with pytest.raises(TraceError, match=f"an offset of {offset} bytes behind a buffer descriptor") as e:
                buffer + offset
            assert "move the base of the descriptor" in str(e.value)
        with pytest.raises(TraceError, match="64-bit run-time offset"):
            buffer + k.arg(fx.Int64)
        moved = buffer + k.arg(fx.Int32) + 16
        assert (moved - 32).address_space == "buffer_desc"
        words = fx.rocdl.make_buffer_ptr(pointer(k, fx.Float64), 64)
        with pytest.raises(TraceError, match=f"an offset of {2**31} bytes"):
            words + 2**28


@flyc.kernel(known_block_size=(64, 1, 1))
def halo(x: fx.Tensor, y: fx.Tensor):
    """Lanes past the end of the tensor read zero and write nothing."""
    at = fx.thread_idx.x
    source, target = fx.rocdl.make_buffer_tensor(x), fx.rocdl.make_buffer_tensor(y)
    v = fx.rocdl.raw_ptr_buffer_load(fx.Float32, source, at * 4, 0, "nt")
    fx.rocdl.raw_ptr_buffer_store(v + 1.0, fx.rocdl.get_buffer_rsrc(target), at * 4)
    wide = fx.rocdl.raw_ptr_buffer_load(fx.Float32, source, 0, 16, count=4)
    if at == 0:
        fx.rocdl.raw_ptr_buffer_store(wide * 2.0, target, 0, 128)


@pytest.mark.sim
def test_raw_buffer_accesses_end_with_the_tensor() -> None:
    x, y = np.arange(40, dtype=np.float32), np.zeros(50, np.float32)
    artifact = flyc.compile(halo, "f32[?]", "f32[?]", arch="gfx942", stop_after="llvm")
    artifact.simulate(x, y, grid=(1, 1, 1))
    want = np.concatenate([x + 1, np.ones(10, np.float32)])
    want[32:36] = x[4:8] * 2
    np.testing.assert_array_equal(y, want)


def test_cache_policies_have_names_that_the_chip_knows() -> None:
    with Tracing("gfx942") as k:
        buffer = fx.rocdl.make_buffer_ptr(pointer(k, fx.Float32), 256)
        fx.rocdl.raw_ptr_buffer_load(fx.Float32, buffer, 0, 0, "sc0|nt")
        for policy in ("glc", 4):
            with pytest.raises(AtomError, match=r"cache policy of gfx942: sc0 \(1\)"):
                fx.rocdl.raw_ptr_buffer_load(fx.Float32, buffer, 0, 0, policy)
        with pytest.raises(TraceError, match="use whole elements"):
            fx.rocdl.raw_ptr_buffer_load(fx.Float32, buffer, 0, 2)


# --- waits and scheduling ------------------------------------------------------------------------


def test_waitcnt_is_encoded_for_each_family() -> None:
    assert encode_waitcnt("cdna3", {}) == 0xCF7F and encode_waitcnt("cdna3", {"vmcnt": 0}) == 0x0F70
    assert encode_waitcnt("cdna3", {"lgkmcnt": 0}) == 0xC07F and encode_waitcnt("cdna3", {"vmcnt": 20}) == 0x4F74
    assert encode_waitcnt("rdna3", {}) == 0xFFF7 and encode_waitcnt("rdna3", {"vmcnt": 3}) == 0x0FF7
    assert encode_waitcnt("rdna3", {"lgkmcnt": 5, "expcnt": 1}) == 0xFC51
    with pytest.raises(TraceError, match="use 0 to 63"):
        encode_waitcnt("cdna3", {"vmcnt": 64})


@flyc.kernel(known_block_size=(64, 1, 1))
def waits(x: fx.Tensor):
    fx.rocdl.s_waitcnt(vmcnt=2)
    fx.rocdl.sched_barrier(0)
    fx.rocdl.sched_mfma(2)
    fx.rocdl.sched_vmem(1)
    fx.rocdl.sched_dsrd(3)
    fx.rocdl.sched_dswr(4)
    fx.rocdl.s_setprio(2)
    fx.rocdl.s_nop(1)
    fx.rocdl.s_sleep(1)
    fx.rocdl.s_barrier()
    x[fx.thread_idx.x] = 1.0


@pytest.mark.llvm
@pytest.mark.parametrize("arch", ["gfx942", "gfx1100"])
def test_waits_reach_the_assembly(arch: str) -> None:
    artifact = flyc.compile(waits, "f32[64]", arch=arch)
    text = artifact.assembly
    assert "s_waitcnt vmcnt(2)" in text and "s_setprio 2" in text and "s_sleep 1" in text and "s_nop 1" in text
    for mask, size in ((8, 2), (32, 1), (256, 3), (512, 4)):
        assert f"@llvm.amdgcn.sched.group.barrier(i32 {mask}, i32 {size}, i32 0)" in artifact.llvm_ir
    assert "@llvm.amdgcn.sched.barrier(i32 0)" in artifact.llvm_ir


def test_waits_that_do_not_exist_are_refused() -> None:
    with Tracing("gfx1250"):
        with pytest.raises(TargetError, match="s_wait_loadcnt"):
            fx.rocdl.s_waitcnt(vmcnt=0)
        fx.rocdl.s_wait_loadcnt(0)
        fx.rocdl.s_wait_tensorcnt(1)
    with Tracing("gfx942"):
        cases = [
            (lambda: fx.rocdl.s_wait_dscnt(0), "use fx.rocdl.s_waitcnt"),
            (lambda: fx.rocdl.s_waitcnt(0, vmcnt=1), "give one of them"),
            (lambda: fx.rocdl.s_waitcnt(1 << 16), "0 to 65535"),
            (lambda: fx.rocdl.s_setprio(4), "int of 0 to 3"),
            (lambda: fx.rocdl.s_nop(16), "int of 0 to 15"),
            (lambda: fx.rocdl.s_sleep(-1), "int of 0 to 127"),
        ]
        for run, fix in cases:
            with pytest.raises(FlyError) as e:
                run()
            assert fix in str(e.value)


# --- conversions ---------------------------------------------------------------------------------


@pytest.mark.sim
def test_packed_conversions_by_instruction() -> None:
    x = np.linspace(-8, 8, 64).astype(np.float32)

    def fn(v):
        word = fx.rocdl.cvt_pk_fp8_f32(v, -v)
        word = fx.rocdl.cvt_pk_fp8_f32(v * 2.0, 1.0, word, True)
        low, high = fx.rocdl.cvt_pk_f32_fp8(word), fx.rocdl.cvt_pk_f32_fp8(word, True)
        return low[0] + low[1] + high[0] - high[1]

    import ml_dtypes

    want = (x * 2).astype(ml_dtypes.float8_e4m3fnuz).astype(np.float32) - 1
    np.testing.assert_array_equal(elementwise(fn, [x], fx.Float32, np.float32), want)
    bits = (np.arange(64) * 0x01020304).astype(np.int32)
    got = elementwise(lambda v: fx.rocdl.perm_b32(v, v, 0x00010203), [bits], fx.Int32, np.int32)
    np.testing.assert_array_equal(got, bits.byteswap())
    got = elementwise(fx.rocdl.rcp, [x], fx.Float32, np.float32)
    np.testing.assert_array_equal(got, np.float32(1) / x)


def test_conversions_that_a_chip_lacks_are_refused_by_name() -> None:
    with Tracing("gfx942") as k:
        word = k.arg(fx.Int32)
        with pytest.raises(TargetError, match="gfx942 has no cvt_scalef32_pk_bf16_fp8") as e:
            fx.rocdl.cvt_scalef32_pk_bf16_fp8(word, 1.0)
        assert "it exists on gfx950" in str(e.value)
        with pytest.raises(TargetError, match="it exists on gfx950"):
            fx.rocdl.cvt_scalef32_pk_f32_fp4(word, 1.0)
    with Tracing("gfx90a") as k, pytest.raises(TargetError, match="gfx942, gfx950"):
        fx.rocdl.cvt_pk_fp8_f32(k.arg(fx.Float32), 1.0)
    with Tracing("gfx950") as k, pytest.raises(TraceError, match="use 0 to 3"):
        fx.rocdl.cvt_scalef32_pk_bf16_fp4(k.arg(fx.Int32), 1.0, 4)


@flyc.kernel(known_block_size=(64, 1, 1))
def scaled(x: fx.Tensor, y: fx.Tensor):
    word = x[fx.thread_idx.x]
    made = fx.rocdl.cvt_scalef32_pk_bf16_fp8(word, 2.0).to(fx.Float32) + fx.rocdl.cvt_scalef32_pk_f32_fp4(word, 1.0, 3)
    packed = fx.rocdl.cvt_scalef32_pk_fp4_f32(word, made[0], made[1], 4.0, 2)
    y[fx.thread_idx.x] = packed + fx.rocdl.cvt_scalef32_pk_bf16_fp4(word, 1.0)[1].to(fx.Int32)


@pytest.mark.llvm
def test_scaled_conversions_compile_on_gfx950() -> None:
    text = flyc.compile(scaled, "i32[64]", "i32[64]", arch="gfx950").assembly
    for name in ("pk_bf16_fp8", "pk_f32_fp4", "pk_fp4_f32", "pk_bf16_fp4"):
        assert f"v_cvt_scalef32_{name}" in text


# --- atoms ---------------------------------------------------------------------------------------


def test_atoms_pick_the_family_of_the_target() -> None:
    with Tracing("gfx942"):
        assert "cdna3.mfma<32x32x8, (bf16, bf16) -> f32>" in str(fx.rocdl.MFMA(32, 32, 8, fx.BFloat16))
        assert fx.make_mma_atom(fx.rocdl.MFMA(16, 16, 32, (fx.Float8E4M3FNUZ, fx.Float8E5M2FNUZ))).shape_mnk[2] == 32
        with pytest.raises(TargetError, match=r"use fx\.rocdl\.MFMA"):
            fx.rocdl.WMMA(16, 16, 16, fx.Float16)
        with pytest.raises(AtomError):
            fx.rocdl.MFMA(16, 16, 17, fx.Float16)
        with pytest.raises(FlyError, match="128> is not on gfx942"):
            fx.rocdl.BufferCopyLDS128b()
        with pytest.raises(AtomError, match="96 or 128 on gfx950"):
            fx.rocdl.BufferCopyLDS64b()
        assert fx.rocdl.BufferCopyLDS32b().bit_size == 32 and fx.rocdl.BufferCopy96b("nt").bit_size == 96
    with Tracing("gfx950"):
        assert fx.rocdl.BufferCopyLDS128b().bit_size == 128
    for arch, family in {"gfx1100": "gfx11", "gfx1201": "gfx120x"}.items():
        with Tracing(arch):
            assert f"{family}.wmma" in str(fx.rocdl.WMMA(16, 16, 16, fx.Float16, fx.Float32))
    with Tracing("gfx1250"):
        assert "gfx1250.wmma" in str(fx.rocdl.WMMA(16, 16, 32, fx.Float16, fx.Float32))


def test_atom_objects_have_the_documented_properties() -> None:
    with Tracing() as k:
        copy = fx.make_copy_atom(fx.rocdl.BufferCopy64b(), fx.Float16)
        assert copy.val_bits == 16 and str(copy.thr_layout) == "1:1"
        assert [str(v) for v in (copy.layout_src_tv, copy.layout_dst_tv, copy.layout_ref_tv)] == ["(1,4):(1,1)"] * 3
        assert "soffset" in str(copy.set_value("soffset", 4).ir_value().op.attrs)
        fx.atom_set_value(copy, {"soffset": k.arg(fx.Int32)})
        with pytest.raises(FlyError, match="soffset"):
            copy.set_value("offset", 4)
        mma = fx.make_mma_atom(fx.rocdl.MFMA(16, 16, 16, fx.Float16))
        assert mma.shape_mnk == (16, 16, 16) and str(mma.thr_layout) == "64:1"
        assert fx.size(mma.layout_A_tv) == fx.size(mma.layout_B_tv) == fx.size(mma.layout_C_tv) == 256
        tiled = fx.make_tiled_mma(mma, fx.make_layout((2, 2, 1), (1, 2, 0)))
        assert tiled.tile_size_mnk == (32, 32, 16) and fx.size(tiled.thr_layout_vmnk) == 256
        assert str(tiled.permutation_mnk) == "[*|*|*]" and tiled.atom_layout.shape == (2, 2, 1)
        assert fx.size(tiled.tv_layout_A_tiled[1]) == 4 and fx.size(tiled.tv_layout_C_tiled) == 1024
        assert tiled.mma_atom is mma and fx.size(tiled.tv_layout_B_tiled[0]) == 256
        loads = fx.make_tiled_copy_A(copy, tiled)
        assert fx.size(loads.layout_tv_tiled) == 256 * 4 and fx.size(loads.layout_src_tv_tiled) == 256 * 4
        assert str(loads.layout_dst_tv_tiled) == str(loads.layout_src_tv_tiled) and str(loads.tile_mn) == "[32|16]"
        tensor = pointer(k, fx.Float16).view(fx.make_layout((32, 16), (16, 1)))
        part = fx.tiled_copy_partition_src(loads, tensor, 3)
        assert part.shape == loads.thr_slice(3).partition_S(tensor).shape
        assert fx.tiled_copy_partition_dst(loads, tensor, 3).shape == part.shape
        fragment = tiled.make_fragment_A(tensor)
        assert fx.size(fx.tiled_copy_retile(loads, fragment)) == 4
        assert fx.tiled_mma_partition("A", tiled, tensor, 3).shape == tiled.thr_slice(3).partition_A(tensor).shape
        with pytest.raises(AtomError, match="element widths that divide"):
            fx.make_copy_atom(fx.UniversalCopy(96), 64)
        assert fx.make_mma_atom(fx.UniversalFMA(fx.Float32)).shape_mnk == (1, 1, 1)


@flyc.kernel(known_block_size=(64, 1, 1))
def atomics(x: fx.Tensor, y: fx.Tensor, z: fx.Tensor):
    at = fx.thread_idx.x
    one = fx.make_layout(1, 1)
    registers = fx.make_rmem_tensor(1, x.dtype)
    registers[0] = x[at]
    add = fx.make_copy_atom(fx.UniversalAtomicAdd(x.dtype, "agent"), x.dtype)
    fx.copy(add, registers, (y.iter + at % 4).view(one))
    largest = fx.make_copy_atom(fx.rocdl.BufferAtomicMax(x.dtype), x.dtype)
    fx.copy(largest, registers, (fx.rocdl.make_buffer_tensor(z).iter + at % 4).view(one), pred=at < 32)


@pytest.mark.sim
@pytest.mark.parametrize(("name", "kind"), [("i32", np.int32), ("u32", np.uint32)])
def test_atomic_atoms_update_memory_by_the_sign_of_the_type(name: str, kind: type) -> None:
    x = np.random.default_rng(0).integers(-(2**20), 2**20, 64).astype(np.int32).view(kind)
    y, z = np.zeros(4, kind), np.zeros(4, kind)
    specs = (f"{name}[64]", f"{name}[4]", f"{name}[4]")
    flyc.compile(atomics, *specs, arch="gfx942", stop_after="llvm").simulate(x, y, z, grid=(1, 1, 1))
    np.testing.assert_array_equal(y, x.reshape(16, 4).sum(axis=0, dtype=kind))
    np.testing.assert_array_equal(z, np.maximum(x[:32].reshape(8, 4).max(axis=0), 0).astype(kind))


def test_atoms_of_gfx950_and_gfx1250_have_their_own_names() -> None:
    with Tracing("gfx950") as k:
        scale = fx.make_mma_atom(fx.rocdl.cdna4.MFMA_Scale(16, 16, 128, fx.Float4E2M1FN, opsel_a=1))
        scale = scale.set_value({"scale_a": 127, "scale_b": k.arg(fx.Int32)})
        assert "cdna4.mfma_scale" in str(scale) and scale.shape_mnk == (16, 16, 128)
        assert "cdna4.lds_read_trans<16, 64>" in str(fx.rocdl.cdna4.LDSReadTrans16_64b())
        assert "global_load_async_lds<96>" in str(fx.rocdl.cdna4.GlobalLoadAsyncLDS96b())
        assert fx.rocdl.BufferAtomicPkAdd(fx.BFloat16).bit_size == 32
        assert type(fx.rocdl.cdna4.cvt_sr_f32_to_bf16(k.arg(fx.Float32), 3)) is fx.BFloat16
        with pytest.raises(AtomError):
            fx.rocdl.cdna4.BufferLoadAsyncLDS(64)
        with pytest.raises(TraceError, match="the accumulator is Float32"):
            fx.rocdl.cdna4.MFMA_Scale(16, 16, 128, fx.Float4E2M1FN, None, fx.Float16)
    with Tracing("gfx1250"):
        assert "gfx1250.wmma_scale" in str(fx.rocdl.cdna5.WMMAScale(16, 16, 128, fx.Float8E4M3FN))
    with Tracing("gfx942") as k:
        with pytest.raises(TargetError, match="it exists on gfx950"):
            fx.rocdl.cdna4.cvt_sr_f32_to_bf16(k.arg(fx.Float32), 3)
        with pytest.raises(FlyError, match="gfx942"):
            fx.rocdl.cdna4.LDSReadTrans8_64b()
        with pytest.raises(FlyError, match="gfx942"):
            fx.rocdl.BufferAtomicPkAdd(fx.BFloat16)
        with pytest.raises(TraceError, match="use Float16 or BFloat16"):
            fx.rocdl.BufferAtomicPkAdd(fx.Float32)


@flyc.kernel(known_block_size=(64, 1, 1))
def through_lds(x: fx.Tensor, y: fx.Tensor, z: fx.Tensor):
    at = fx.thread_idx.x
    source = fx.rocdl.make_buffer_tensor(x)
    lds = fx.shared_memory(fx.Float32, 128)
    fx.rocdl.raw_ptr_buffer_load_lds(source, lds, 4, at * 4)
    fx.rocdl.buffer_load_to_lds(fx.rocdl.get_buffer_rsrc(source), lds + 64, (at ^ 1) * 4)
    fx.rocdl.s_waitcnt(vmcnt=0)
    fx.barrier()
    y[at] = lds[at ^ 3] + lds[at + 64]
    target = fx.rocdl.make_buffer_tensor(z)
    fx.rocdl.raw_ptr_buffer_atomic_fadd(lds[at], target, at % 2 * 4)
    fx.rocdl.intrinsic("llvm.amdgcn.s.sleep", None, 1)


@pytest.mark.sim
def test_moves_to_lds_and_raw_atomics() -> None:
    x, y, z = np.arange(64, dtype=np.float32), np.zeros(64, np.float32), np.zeros(2, np.float32)
    artifact = flyc.compile(through_lds, "f32[64]", "f32[64]", "f32[2]", arch="gfx942", stop_after="llvm")
    artifact.simulate(x, y, z, grid=(1, 1, 1))
    lanes = np.arange(64)
    np.testing.assert_array_equal(y, x[lanes ^ 3] + x[lanes ^ 1])
    np.testing.assert_array_equal(z, [x[0::2].sum(), x[1::2].sum()])


@pytest.mark.sim
def test_an_intrinsic_by_its_name() -> None:
    x = np.arange(64, dtype=np.int32) * 0x01010101
    got = elementwise(
        lambda v: fx.rocdl.intrinsic("llvm.amdgcn.perm", fx.Int32, v, v, fx.Int32(0x00010203), pure=True), [x],
        fx.Int32, np.int32,
    )  # fmt: skip
    np.testing.assert_array_equal(got, x.byteswap())
    y = np.ones(64, np.float16)
    got = elementwise(
        lambda v: fx.rocdl.intrinsic(
            "llvm.amdgcn.mfma.f32.16x16x16f16", (fx.Float32, 4), fx.full(4, v), fx.full(4, v),
            fx.full(4, 1.0, fx.Float32), 0, 0, 0,
        )[0],
        [y], fx.Float32, np.float32,
    )  # fmt: skip
    np.testing.assert_array_equal(got, 17)


def test_misuse_of_raw_instructions_is_explained() -> None:
    with Tracing() as k:
        buffer = fx.rocdl.make_buffer_ptr(pointer(k, fx.Float32), 256)
        lds = fx.shared_memory(fx.Float32, 64)
        cases = [
            (lambda: fx.rocdl.raw_ptr_buffer_load_lds(buffer, lds, 16), "use 1, 2, 4 bytes"),
            (lambda: fx.rocdl.raw_ptr_buffer_load_lds(buffer, lds, 4, offset=4096), "0 to 4095"),
            (lambda: fx.rocdl.raw_ptr_buffer_load_lds(buffer, buffer, 4), "pointer to shared memory"),
            (lambda: fx.rocdl.cluster_workgroup_id_x(), "they exist on gfx1250"),
            (lambda: fx.rocdl.intrinsic("llvm.amdgcn.perm", fx.Int32, "x"), "a number, a vector or a pointer"),
            (lambda: fx.rocdl.intrinsic("llvm.amdgcn.perm", int), "(type, count), or None"),
            (lambda: fx.rocdl.raw_ptr_buffer_atomic_fmax(fx.Float32(1.0), buffer), "on gfx942"),
        ]
        for run, fix in cases:
            with pytest.raises(FlyError) as e:
                run()
            assert fix in str(e.value), str(e.value)


@flyc.kernel(known_block_size=(64, 1, 1))
def unknown(x: fx.Tensor):
    fx.rocdl.intrinsic("llvm.amdgcn.no.such.thing", None, 1)


def test_an_unknown_intrinsic_never_reaches_llvm() -> None:
    with pytest.raises(FlyError, match=r"no\.such\.thing"):
        flyc.compile(unknown, "f32[64]", arch="gfx942", stop_after="llvm")
