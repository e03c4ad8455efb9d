"""What all atoms share, and whether they carry state.

A family derives from ``StatelessCopy`` or ``StatefulCopy`` (`copy_op`), ``StatelessMma`` or ``StatefulMma`` (`mma_op`),
or from the rows of a table (`rows`), and says what its instruction is in SSA form: values in, values out.  The memory
form (load the operands, SSA form, store the result) and the predicated form come from the base classes.
"""

from __future__ import annotations

from ..errors import TargetError
from ..layout import Layout
from ..target import CHIPS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Self

    from ..state import StateStruct
    from ..target import Target

ONE_THREAD = Layout(1, 1)
ALL_TARGETS = tuple(CHIPS)


class Atom:
    """One copy or matrix operation; two are equal when their fly spelling is.

    Attributes:
        mnemonic: Fly spelling without ``!`` and parameters.
        params: What stands between ``<`` and ``>``.
        targets: Processors that have the instruction.
        wave: Lanes in a wave, ``None`` where any wave size does.
        checked_on_hardware: Whether somebody has run it on the chip.
    """

    __slots__ = ("params",)

    mnemonic: str
    params: str
    targets: tuple[str, ...] = ALL_TARGETS
    wave: int | None = None
    checked_on_hardware: bool = False

    def __str__(self) -> str:
        return f"!{self.mnemonic}<{self.params}>"

    def __repr__(self) -> str:
        return f"<{self}>"

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Atom) and str(self) == str(other))

    def __hash__(self) -> int:
        return hash(str(self))

    @property
    def name(self) -> str:
        """The spelling without the dialect: ``cdna3.mfma<16x16x16, (f16, f16) -> f32>``."""
        return str(self).partition(".")[2]

    @property
    def thr_layout(self) -> Layout:
        """The lanes that cooperate; copies work lane by lane unless they say otherwise."""
        return ONE_THREAD

    @property
    def intrinsic(self) -> str | None:
        """Full name of the LLVM intrinsic, ``None`` where plain LLVM instructions do."""
        return None

    def check_target(self, target: Target) -> None:
        """Checks that the target has the instruction.

        Raises:
            TargetError: It has not; the fix names what is legal instead.
        """
        if target.processor not in self.targets:
            raise TargetError(f"{self.name} is not on {target.processor}", fix=self.alternatives(target))
        if self.wave is not None and self.wave != target.wave_size:
            raise TargetError(
                f"{self.name} needs waves of {self.wave} lanes, the kernel for {target} has {target.wave_size}",
                fix=f"compile for wave size {self.wave}, or use an atom for waves of {target.wave_size}",
            )

    def alternatives(self, target: Target) -> str:
        """What to write instead on a target that lacks the atom."""
        return f"targets with it: {', '.join(self.targets)}"

    def describe(self) -> dict[str, object]:
        """The row as ``flyllvm atoms --json`` prints it."""
        return {
            "atom": self.name,
            "targets": list(self.targets),
            "intrinsic": self.intrinsic,
            "wave": self.wave,
            "checked_on_hardware": self.checked_on_hardware,
        }


class Stateless:
    """Mixin: the type alone says everything, so the atom can be rebuilt anywhere."""

    __slots__ = ()

    def is_static(self) -> bool:
        """Always true."""
        return True

    def rebuild(self) -> Self:
        """The same atom: operations are immutable."""
        return self


class Stateful:
    """Mixin: the atom carries fields whose values exist at run time."""

    __slots__ = ()

    state: StateStruct


def describe_state(op: Atom) -> list[dict[str, object]]:
    """The state fields as ``flyllvm atoms --json`` prints them; empty for a stateless atom."""
    if not isinstance(op, Stateful):
        return []
    return [
        {
            "name": f.name,
            "type": str(f.type),
            "units": f.units,
            "default": f.default,
            "constant": f.constant,
            "doc": f.doc,
        }
        for f in op.state
    ]
