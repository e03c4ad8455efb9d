"""Every author-facing name is there; those that are not say what to use."""

from __future__ import annotations

import importlib
import subprocess
import sys
from typing import Any

import pytest

import flyllvm.expr as fx

NAMES = {
    "": """
        thread_idx block_idx block_dim grid_dim thread_id block_id lane_id barrier shuffle shuffle_xor
        shuffle_up shuffle_down shuffle_idx known_block_size num_warp_threads SharedAllocator make_int_tuple
        make_shape make_stride make_coord make_layout make_layout_like make_ordered_layout
        make_composed_layout make_identity_layout make_view make_fragment_like make_fragment_layout_like
        make_tile static E Basis rank depth get_scalar get_leaves get_shape get_stride get_layout get_iter
        composed_get_inner composed_get_offset composed_get_outer size coprofile coshape cosize
        is_profile_congruent is_profile_weakly_congruent int_tuple_add int_tuple_sub int_tuple_mul
        int_tuple_div int_tuple_mod int_tuple_product int_tuple_product_each int_tuple_product_like
        shape_div ceil_div elem_less equal get_ get take select group append prepend slice dice crd2idx
        idx2crd get_flat_coord get_1d_coord coalesce composition complement right_inverse left_inverse
        logical_divide zipped_divide tiled_divide flat_divide logical_product zipped_product tiled_product
        flat_product blocked_product raked_product recast_layout tile_to_shape make_copy_atom make_mma_atom
        atom_set_value copy_atom_call mma_atom_call make_tiled_copy make_tiled_mma tiled_copy_partition_src
        tiled_copy_partition_dst tiled_copy_retile tiled_mma_partition tiled_mma_partition_shape
        mma_make_fragment copy gemm make_rmem_tensor make_layout_tv make_tiled_copy_tv make_tiled_copy_A
        make_tiled_copy_B make_tiled_copy_C ThrCopy ThrMma gather scatter make_ptr get_dyn_shared inttoptr
        ptrtoint to_llvm_ptr add_offset apply_swizzle ptr_load ptr_store recast_iter memref_alloca
        memref_load memref_store memref_load_vec memref_store_vec printf assume UniversalCopy
        UniversalCopy8b UniversalCopy16b UniversalCopy32b UniversalCopy64b UniversalCopy128b UniversalAtomic
        UniversalAtomicAdd UniversalAtomicMax UniversalAtomicMin UniversalAtomicAnd UniversalAtomicOr
        UniversalAtomicInc UniversalAtomicDec UniversalFMA const_expr range_constexpr full full_like
        zeros_like ones_like empty_like struct union Array Align Storage Arena Constexpr Stream Tensor
        Pointer TensorSpec Boolean Int4 Int8 Int16 Int32 Int64 Int128 Uint8 Uint16 Uint32 Uint64 Uint128
        Float16 BFloat16 Float32 Float64 Float8E5M2 Float8E4M3FN Float8E4M3FNUZ Float6E2M3FN Float6E3M2FN
        Float8E8M0FNU Float4E2M1FN Index gpu rocdl math arith Vector Layout ComposedLayout Swizzle
    """,
    "math": """
        absf ceil floor trunc round roundeven exp exp2 expm1 log log2 log10 log1p sqrt rsqrt cbrt sin cos
        tan asin acos atan sinh cosh tanh asinh acosh atanh erf erfc sincos absi ctlz cttz ctpop powf fpowi
        ipowi atan2 copysign fma clampf isnan isinf isfinite isnormal cmpi cmpf max min ceildiv maxnumf
        maximumf minimumf shrui
    """,
    "arith": "cmpi cmpf max min ceildiv maxnumf maximumf minimumf shrui select",
    "gpu": "shuffle shuffle_xor thread_id block_id lane_id barrier SharedAllocator known_block_size num_warp_threads",
    "rocdl": """
        BufferCopy BufferCopy8b BufferCopy16b BufferCopy32b BufferCopy64b BufferCopy128b BufferCopyLDS
        BufferCopyLDS32b BufferCopyLDS128b BufferAtomic BufferAtomicAdd BufferAtomicMax BufferAtomicMin
        BufferAtomicPkAdd MFMA WMMA cdna4 cdna5 make_buffer_ptr make_buffer_tensor get_buffer_rsrc s_waitcnt
        s_wait_asynccnt sched_barrier sched_group_barrier sched_mfma sched_vmem sched_dsrd sched_dswr
        raw_ptr_buffer_load raw_ptr_buffer_load_lds buffer_load_to_lds raw_ptr_buffer_atomic_fadd
        raw_ptr_buffer_atomic_fmax cvt_pk_fp8_f32 cvt_pk_f32_fp8 cvt_scalef32_pk_f32_fp4
        cvt_scalef32_pk_bf16_fp4 cvt_scalef32_pk_fp4_f32 rcp perm_b32 ds_bpermute readfirstlane readlane
        ballot wave_id cluster_workgroup_id_x cluster_workgroup_id_y cluster_workgroup_id_z
    """,
    "rocdl.cdna4": """
        LDSReadTrans LDSReadTrans4_64b LDSReadTrans8_64b LDSReadTrans6_96b LDSReadTrans16_64b
        BufferLoadAsyncLDS BufferLoadAsyncLDS32b BufferLoadAsyncLDS96b BufferLoadAsyncLDS128b
        GlobalLoadAsyncLDS GlobalLoadAsyncLDS32b GlobalLoadAsyncLDS96b GlobalLoadAsyncLDS128b MFMA_Scale
        cvt_sr_f32_to_bf16
    """,
    "rocdl.cdna5": "WMMAScale",
}


@pytest.mark.parametrize("place", NAMES)
def test_every_name_is_there_and_documented(place: str) -> None:
    home = fx
    for part in filter(None, place.split(".")):
        home = getattr(home, part)
    for name in NAMES[place].split():
        found = getattr(home, name)
        assert found.__doc__ or not callable(found), name


def test_absent_names_say_what_to_use() -> None:
    for home, name, use in (
        (fx, "Float8E4M3B11FNUZ", "Float8E4M3FNUZ"),
        (fx, "SwizzleType", "fx.Swizzle(mask, base, shift)"),
        (fx, "MemRefType", "fx.memref_alloca(fx.Float32, layout)"),
        (fx, "LayoutType", "fx.make_layout(shape, stride)"),
        (fx, "AddressSpace", "'shared'"),
        (fx, "T", "fx.Float32"),
        (fx.arith, "addf", "a + b"),
        (fx.arith, "trunc_f", "x.to(dtype)"),
        (fx.rocdl, "mfma_f32_16x16x16f16", "fx.rocdl.MFMA"),
        (fx.rocdl, "BufferLDST128b", "use BufferCopy128b"),
        (fx.rocdl, "tensor_load_to_lds", "intrinsic("),
    ):
        assert not hasattr(home, name)
        with pytest.raises(AttributeError, match=name) as e:
            getattr(home, name)
        assert use in str(e.value)


@pytest.mark.parametrize("words", [fx, fx.rocdl], ids=["expr", "rocdl"])
def test_words_that_are_loaded_later_are_those_of_their_modules(words: Any) -> None:
    for name, home in words._HOMES.items():
        assert getattr(words, name) is getattr(importlib.import_module(f"flyllvm.expr.{home}"), name)
    assert {*words._HOMES, *words._MODULES} <= set(dir(words))


def test_a_word_with_the_name_of_a_module_is_the_word() -> None:
    code = "import flyllvm.expr as fx; fx.rocdl.cvt_pk_f32_fp8; print(callable(fx.rocdl.convert), callable(fx.copy))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "True True\n"


def test_a_star_import_brings_every_word() -> None:
    scope: dict[str, object] = {}
    exec("from flyllvm.expr import *", scope)
    words = {n for names in (NAMES[""],) for n in names.split()}
    assert words <= scope.keys() and scope["gemm"] is fx.gemm and scope["rocdl"] is fx.rocdl
