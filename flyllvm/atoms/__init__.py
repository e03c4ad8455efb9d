"""Atoms: the instructions of the copy and matrix units, as layouts plus an emission rule.

``base`` holds the four kinds (stateless or stateful, copy or mma), ``rows`` the table rows they are made from,
``contract`` the checks on layouts, ``wrappers`` the descriptions a kernel works with.  Families of one target live in
its folder (``rocdl/``) and load on demand, by the mnemonic that names them.
"""

from __future__ import annotations

from ..ir.protocols import register_payload_module
from . import cpu, rocdl

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from .base import Atom

#: Modules of the target-neutral families, by mnemonic.
FAMILIES = {
    "fly.universal_copy": "flyllvm.atoms.universal",
    "fly.universal_fma": "flyllvm.atoms.universal",
    "fly.universal_atomic": "flyllvm.atoms.universal_atomic",
}
#: Families of the host CPU.
HOST_FAMILIES = cpu.FAMILIES
for _mnemonic, _module in FAMILIES.items():
    register_payload_module(_mnemonic, _module)


def all_families() -> dict[str, str]:
    """Every family: mnemonic to the module that holds its table, in the order of presentation."""
    return {**rocdl.FAMILIES, **FAMILIES}


def all_rows() -> Iterator[Atom]:
    """One atom for each row of each family.  Loads every family."""
    import importlib

    for module in dict.fromkeys(all_families().values()):
        yield from importlib.import_module(module).atoms()
