"""Atoms of the host CPU: one thread, plain x86-64 code.

They show that nothing above this folder knows of GPUs: the same tables of the language, passes and code generation
lower them through the x86 backend, and ``codegen.client.run_host`` runs the result.  They are no rows of
``flyllvm atoms``, which lists what GPUs have.
"""

from __future__ import annotations

from ...ir.protocols import register_payload_module

#: Modules of the families, by mnemonic.
FAMILIES = {
    "fly_cpu.copy": "flyllvm.atoms.cpu.scalar",
    "fly_cpu.fma": "flyllvm.atoms.cpu.scalar",
}
for _mnemonic, _module in FAMILIES.items():
    register_payload_module(_mnemonic, _module)
