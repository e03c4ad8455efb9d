"""AMD names of the authoring language: matrix and buffer atoms, descriptors, waits, scheduling, conversions.

Each is loaded at first use, as in `flyllvm.expr`.
"""

from __future__ import annotations

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
from .cvt import convert  # after the module of that name, which would else stand in its place

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..gpu import (
        ballot as ballot,
        ds_bpermute as ds_bpermute,
        readfirstlane as readfirstlane,
        readlane as readlane,
        wave_id as wave_id,
    )
    from . import cdna4 as cdna4, cdna5 as cdna5
    from .async_lds import (
        asyncmark as asyncmark,
        wait_asyncmark as wait_asyncmark,
    )
    from .atoms import *  # noqa: F403
    from .buffers import (
        MAX_RECORDS as MAX_RECORDS,
        get_buffer_rsrc as get_buffer_rsrc,
        make_buffer_ptr as make_buffer_ptr,
        make_buffer_tensor as make_buffer_tensor,
        raw_ptr_buffer_load as raw_ptr_buffer_load,
        raw_ptr_buffer_store as raw_ptr_buffer_store,
    )
    from .load_tr import (
        DSLoadTr as DSLoadTr,
        GlobalLoadTr as GlobalLoadTr,
    )
    from .raw import (
        buffer_load_to_lds as buffer_load_to_lds,
        cluster_workgroup_id_x as cluster_workgroup_id_x,
        cluster_workgroup_id_y as cluster_workgroup_id_y,
        cluster_workgroup_id_z as cluster_workgroup_id_z,
        intrinsic as intrinsic,
        raw_ptr_buffer_atomic_fadd as raw_ptr_buffer_atomic_fadd,
        raw_ptr_buffer_atomic_fmax as raw_ptr_buffer_atomic_fmax,
        raw_ptr_buffer_load_lds as raw_ptr_buffer_load_lds,
    )
    from .sparse import (
        SMFMAC as SMFMAC,
        SWMMAC as SWMMAC,
    )
    from .tdm import (
        TDM as TDM,
        make_tdm_atom as make_tdm_atom,
    )
    from .waits import (
        iglp_opt as iglp_opt,
        s_barrier as s_barrier,
        s_nop as s_nop,
        s_setprio as s_setprio,
        s_sleep as s_sleep,
        s_wait_asynccnt as s_wait_asynccnt,
        s_wait_dscnt as s_wait_dscnt,
        s_wait_kmcnt as s_wait_kmcnt,
        s_wait_loadcnt as s_wait_loadcnt,
        s_wait_storecnt as s_wait_storecnt,
        s_wait_tensorcnt as s_wait_tensorcnt,
        s_waitcnt as s_waitcnt,
        sched_barrier as sched_barrier,
        sched_dsrd as sched_dsrd,
        sched_dswr as sched_dswr,
        sched_group_barrier as sched_group_barrier,
        sched_mfma as sched_mfma,
        sched_vmem as sched_vmem,
    )

# Module below flyllvm.expr -> its names here.  The imports above say the same to type checkers.
_LATER = {
    "gpu": "ballot ds_bpermute readfirstlane readlane wave_id",
    "rocdl.async_lds": "asyncmark wait_asyncmark",
    "rocdl.atoms": (
        "MFMA WMMA BufferAtomic BufferAtomicAdd BufferAtomicMax BufferAtomicMin BufferAtomicPkAdd BufferCopy "
        "BufferCopy8b BufferCopy16b BufferCopy32b BufferCopy64b BufferCopy96b BufferCopy128b BufferCopyLDS "
        "BufferCopyLDS32b BufferCopyLDS64b BufferCopyLDS96b BufferCopyLDS128b"
    ),
    "rocdl.buffers": (
        "MAX_RECORDS get_buffer_rsrc make_buffer_ptr make_buffer_tensor raw_ptr_buffer_load raw_ptr_buffer_store"
    ),
    "rocdl.load_tr": "DSLoadTr GlobalLoadTr",
    "rocdl.raw": (
        "buffer_load_to_lds cluster_workgroup_id_x cluster_workgroup_id_y cluster_workgroup_id_z intrinsic "
        "raw_ptr_buffer_atomic_fadd raw_ptr_buffer_atomic_fmax raw_ptr_buffer_load_lds"
    ),
    "rocdl.sparse": "SMFMAC SWMMAC",
    "rocdl.tdm": "TDM make_tdm_atom",
    "rocdl.waits": (
        "iglp_opt s_barrier s_nop s_setprio s_sleep s_wait_asynccnt s_wait_dscnt s_wait_kmcnt s_wait_loadcnt "
        "s_wait_storecnt s_wait_tensorcnt s_waitcnt sched_barrier sched_dsrd sched_dswr sched_group_barrier "
        "sched_mfma sched_vmem"
    ),
}
_HOMES = {name: home for home, names in _LATER.items() for name in names.split()}
_MODULES = ("cdna4", "cdna5")

#: Names of FlyDSL that are not here, and what to use.
_ABSENT = {
    "lds_transpose_load": "use the atoms cdna4.LDSReadTrans*",
    "tensor_load_to_lds": "call it by name: intrinsic('llvm.amdgcn.tensor.load.to.lds', ...)",
    "tensor_store_from_lds": "call it by name: intrinsic('llvm.amdgcn.tensor.store.from.lds', ...)",
    "cluster_load_async_to_lds": "call it by name: intrinsic('llvm.amdgcn.cluster.load.async.to.lds.b32', ...)",
}


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is not None:
        value: object = getattr(__import__(f"flyllvm.expr.{home}", fromlist=[name]), name)
        globals()[name] = value
        return value
    if name in _MODULES:
        return __import__(f"{__name__}.{name}", fromlist=["*"])
    if name == "__all__":
        return [n for n in __dir__() if n[0] != "_" and n not in ("TYPE_CHECKING", "annotations")]
    if name.startswith(("mfma_", "wmma_", "smfmac_", "swmmac_")):
        raise AttributeError(
            f"fx.rocdl has no {name!r}: use fx.rocdl.MFMA / WMMA / SMFMAC / SWMMAC, or intrinsic('llvm.amdgcn. ...')"
        )
    if name.startswith("BufferLDST"):
        raise AttributeError(f"fx.rocdl has no {name!r}: use {name.replace('LDST', 'Copy')}")
    why = _ABSENT.get(name)
    raise AttributeError(f"fx.rocdl has no {name!r}" + (f": {why}" if why else ""))


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES, *_MODULES})
