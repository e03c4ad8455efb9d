"""Atoms of AMD GPUs: one module per instruction family and chip generation, imported when first named.

A new family is one module plus its line here.
"""

from __future__ import annotations

from ...ir.protocols import register_payload_module

#: Modules of the families, by mnemonic.
FAMILIES = {
    "fly_rocdl.cdna3.buffer_copy": "flyllvm.atoms.rocdl.cdna3_buffer_copy",
    "fly_rocdl.cdna3.buffer_copy_lds": "flyllvm.atoms.rocdl.cdna3_buffer_copy_lds",
    "fly_rocdl.cdna3.mfma": "flyllvm.atoms.rocdl.cdna3_mfma",
}
for _mnemonic, _module in FAMILIES.items():
    register_payload_module(_mnemonic, _module)
