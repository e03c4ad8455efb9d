"""Transposing loads of gfx12 and gfx1250."""

from __future__ import annotations

from ...ir.builder import Builder
from ..atoms import located

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...atoms.rocdl.gfx12_global_load_tr import GlobalLoadTr as _GlobalLoadTr
    from ...atoms.rocdl.gfx1250_ds_load_tr import DsLoadTr


def DSLoadTr(granularity: int, bits: int, map: str = "") -> DsLoadTr:
    """An LDS read of ``bits`` bits a lane that transposes elements of ``granularity`` bits: (16, 128) or (8, 64).

    Args:
        granularity, bits: As above; also (6, 96) and (4, 64), whose lane map is in dispute.
        map: ``square`` for those two: assume the lane map of gfx950's loads.

    Raises:
        AtomError: No such load with a known lane map.
        TargetError: Not on this target.
    """
    from ...atoms.rocdl.gfx1250_ds_load_tr import DsLoadTr as Atom

    made: DsLoadTr = located(lambda: Atom(granularity, bits, map))
    located(lambda: made.check_target(Builder.current().target))
    return made


def GlobalLoadTr(granularity: int, bits: int, map: str = "") -> _GlobalLoadTr:
    """A global load that transposes: (16, 128) or (8, 64) on gfx1200, gfx1201 and gfx1250.

    Args:
        granularity, bits: As above; on gfx1250 also (6, 96) and (4, 64), whose lane map is in dispute.
        map: ``square`` for those two: assume the lane map of gfx950's LDS reads.

    Raises:
        AtomError: No such load with a known lane map.
        TargetError: Not on this target.
    """
    from ...atoms.rocdl.gfx12_global_load_tr import GlobalLoadTr as Atom

    made: _GlobalLoadTr = located(lambda: Atom(granularity, bits, map))
    located(lambda: made.check_target(Builder.current().target))
    return made


__all__ = ["DSLoadTr", "GlobalLoadTr"]
