"""Atoms of AMD GPUs: one module per instruction family and chip generation, imported when first named.

A new family is one module plus its line here.
"""

from __future__ import annotations

from ...ir.protocols import register_payload_module

#: Modules of the families, by mnemonic.
FAMILIES = {
    "fly_rocdl.cdna3.buffer_atomic": "flyllvm.atoms.rocdl.cdna3_buffer_atomic",
    "fly_rocdl.cdna3.buffer_copy": "flyllvm.atoms.rocdl.cdna3_buffer_copy",
    "fly_rocdl.cdna3.buffer_copy_lds": "flyllvm.atoms.rocdl.cdna3_buffer_copy_lds",
    "fly_rocdl.cdna3.mfma": "flyllvm.atoms.rocdl.cdna3_mfma",
    "fly_rocdl.cdna3.smfmac": "flyllvm.atoms.rocdl.cdna3_smfmac",
    "fly_rocdl.cdna4.buffer_load_async_lds": "flyllvm.atoms.rocdl.cdna4_async_lds",
    "fly_rocdl.cdna4.global_load_async_lds": "flyllvm.atoms.rocdl.cdna4_async_lds",
    "fly_rocdl.cdna4.lds_read_trans": "flyllvm.atoms.rocdl.cdna4_lds_read_trans",
    "fly_rocdl.cdna4.mfma_scale": "flyllvm.atoms.rocdl.cdna4_mfma_scale",
    "fly_rocdl.gfx11.wmma": "flyllvm.atoms.rocdl.gfx11_wmma",
    "fly_rocdl.gfx12.global_load_tr": "flyllvm.atoms.rocdl.gfx12_global_load_tr",
    "fly_rocdl.gfx120x.swmmac": "flyllvm.atoms.rocdl.gfx120x_swmmac",
    "fly_rocdl.gfx120x.wmma": "flyllvm.atoms.rocdl.gfx120x_wmma",
    "fly_rocdl.gfx1250.ds_load_tr": "flyllvm.atoms.rocdl.gfx1250_ds_load_tr",
    "fly_rocdl.gfx1250.global_load_async_lds": "flyllvm.atoms.rocdl.gfx1250_global_load_async_lds",
    "fly_rocdl.gfx1250.swmmac": "flyllvm.atoms.rocdl.gfx1250_swmmac",
    "fly_rocdl.gfx1250.tdm": "flyllvm.atoms.rocdl.gfx1250_tdm",
    "fly_rocdl.gfx1250.wmma": "flyllvm.atoms.rocdl.gfx1250_wmma",
    "fly_rocdl.gfx1250.wmma_scale": "flyllvm.atoms.rocdl.gfx1250_wmma_scale",
}
for _mnemonic, _module in FAMILIES.items():
    register_payload_module(_mnemonic, _module)
