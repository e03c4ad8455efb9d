"""In-place rewriting of a kernel: operations a pass does not touch stay as they are."""

from __future__ import annotations

from ..ir.builder import Builder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from ..ir.core import Block, Kernel, Op, Value
    from ..target import Target


class Rewriter:
    """Walks a kernel forward and lets a pass replace operations.

    A handler gets the operation (operands already replaced) and makes new operations with
    ``self.b``; with ``replace`` it says what stands for the old results.  A pure operation made
    inside a loop from values outside of it lands before the loop, as while tracing.
    """

    def __init__(self, kernel: Kernel, target: Target) -> None:
        self.kernel = kernel
        self.b = Builder(kernel, target)
        self.handlers: dict[str, Callable[[Op], None]] = {}
        self._map: dict[Value, Value] = {}
        # Analyses know values and operations by ``id``: none may be freed, and its id given away, before the pass ends.
        self._old: list[list[Op]] = []
        self._verified: set[tuple[object, ...]] = set()

    def trust(self, call: Op) -> None:
        """The first call of an atom that has operands and results of its types is verified for all of them."""
        types = [v.type.text for v in (*call.operands, *call.results)]
        kinds = (call.name, call.attrs.get("segments"), *types)
        call.checked = kinds in self._verified
        self._verified.add(kinds)

    def replace(self, old: Value, new: Value) -> None:
        """Says that ``new`` stands for ``old`` from here on."""
        self._map[old] = new

    def value(self, old: Value) -> Value:
        """What stands for ``old``."""
        return self._map.get(old, old)

    def run(self) -> Kernel:
        """Rewrites the whole kernel."""
        self._block(self.kernel.body)
        return self.kernel

    def remap(self, op: Op) -> None:
        """Puts replaced values into the operands."""
        mapping = self._map
        op.operands = [mapping.get(v, v) for v in op.operands]
        op.checked = False

    def _block(self, block: Block) -> None:
        old, block.ops = block.ops, []
        self._old.append(old)
        builder, handler_of, mapping = self.b, self.handlers.get, self._map
        keep = block.ops.append
        outer = builder.block
        builder.enter(block)
        for op in old:
            for v in op.operands:
                if v in mapping:
                    self.remap(op)
                    break
            builder.loc = op.loc
            if op.regions:
                self.region_op(op)
                keep(op)
                continue
            handler = handler_of(op.name)
            if handler is None:
                keep(op)
            else:
                handler(op)
        builder.block = outer

    def region_op(self, op: Op) -> None:
        """Rewrites the regions of an operation; passes that thread values override this."""
        for region in op.regions:
            self._block(region)

    def keep(self, op: Op) -> None:
        """Leaves an operation as it is (for a handler that decides not to replace it)."""
        self.b.block.ops.append(op)
