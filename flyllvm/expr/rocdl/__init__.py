"""AMD names of the authoring language: matrix and buffer atoms, descriptors, waits, scheduling, conversions."""

from __future__ import annotations

from ..gpu import ballot, ds_bpermute, readfirstlane, readlane, wave_id
from . import cdna4, cdna5
from .async_lds import asyncmark, wait_asyncmark
from .atoms import *  # noqa: F403
from .buffers import (
    MAX_RECORDS,
    get_buffer_rsrc,
    make_buffer_ptr,
    make_buffer_tensor,
    raw_ptr_buffer_load,
    raw_ptr_buffer_store,
)
from .convert import (
    cvt_pk_bf8_f32,
    cvt_pk_f32_bf8,
    cvt_pk_f32_fp8,
    cvt_pk_fp8_f32,
    cvt_scalef32_pk_bf16_fp4,
    cvt_scalef32_pk_bf16_fp8,
    cvt_scalef32_pk_f32_fp4,
    cvt_scalef32_pk_fp4_f32,
    perm_b32,
    rcp,
)
from .cvt import convert
from .load_tr import DSLoadTr, GlobalLoadTr
from .raw import (
    buffer_load_to_lds,
    cluster_workgroup_id_x,
    cluster_workgroup_id_y,
    cluster_workgroup_id_z,
    intrinsic,
    raw_ptr_buffer_atomic_fadd,
    raw_ptr_buffer_atomic_fmax,
    raw_ptr_buffer_load_lds,
)
from .sparse import SMFMAC, SWMMAC
from .tdm import TDM, make_tdm_atom
from .waits import (
    iglp_opt,
    s_barrier,
    s_nop,
    s_setprio,
    s_sleep,
    s_wait_asynccnt,
    s_wait_dscnt,
    s_wait_kmcnt,
    s_wait_loadcnt,
    s_wait_storecnt,
    s_wait_tensorcnt,
    s_waitcnt,
    sched_barrier,
    sched_dsrd,
    sched_dswr,
    sched_group_barrier,
    sched_mfma,
    sched_vmem,
)

#: Names of FlyDSL that are not here, and what to use.
_ABSENT = {
    "lds_transpose_load": "use the atoms cdna4.LDSReadTrans*",
    "tensor_load_to_lds": "call it by name: intrinsic('llvm.amdgcn.tensor.load.to.lds', ...)",
    "tensor_store_from_lds": "call it by name: intrinsic('llvm.amdgcn.tensor.store.from.lds', ...)",
    "cluster_load_async_to_lds": "call it by name: intrinsic('llvm.amdgcn.cluster.load.async.to.lds.b32', ...)",
}


def __getattr__(name: str) -> object:
    if name.startswith(("mfma_", "wmma_", "smfmac_", "swmmac_")):
        raise AttributeError(
            f"fx.rocdl has no {name!r}: use fx.rocdl.MFMA / WMMA / SMFMAC / SWMMAC, or intrinsic('llvm.amdgcn. ...')"
        )
    if name.startswith("BufferLDST"):
        raise AttributeError(f"fx.rocdl has no {name!r}: use {name.replace('LDST', 'Copy')}")
    why = _ABSENT.get(name)
    raise AttributeError(f"fx.rocdl has no {name!r}" + (f": {why}" if why else ""))
