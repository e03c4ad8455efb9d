"""One function of LLVM IR, run per lane in the simulator and per element on the host."""

from __future__ import annotations

from typing import Any

import numpy as np

from flyllvm.sim import simulate
from tests.sim.host_jit import run_on_host

LANES = 256


class Function:
    """``define RESULT @name(TYPES %a0, %a1, ...)`` with its inputs, one row per lane."""

    def __init__(self, name: str, result: str, types: list[str], body: str, inputs: list[Any], out: Any) -> None:
        self.name, self.result, self.types, self.body = name, result, types, body
        self.inputs, self.out = inputs, out

    def definition(self) -> str:
        """The function itself, the same text for both machines."""
        params = ", ".join(f"{t} %a{i}" for i, t in enumerate(self.types))
        return f"define {self.result} @{self.name}({params}) {{\n{self.body}\n}}\n"

    def _call(self, pointer: str, index: str) -> str:
        lines = []
        for i, t in enumerate(self.types):
            lines.append(f"  %p{i} = getelementptr {t}, {pointer} %in{i}, i64 {index}")
            lines.append(f"  %v{i} = load {t}, {pointer} %p{i}, align 1")
        args = ", ".join(f"{t} %v{i}" for i, t in enumerate(self.types))
        lines.append(f"  %r = call {self.result} @{self.name}({args})")
        lines.append(f"  %po = getelementptr {self.result}, {pointer} %out, i64 {index}")
        lines.append(f"  store {self.result} %r, {pointer} %po, align 1")
        return "\n".join([*lines, "  ret void"])

    def host(self) -> str:
        """The wrapper for the JIT."""
        params = ", ".join(f"ptr %in{i}" for i in range(len(self.types)))
        return f"define void @host_{self.name}({params}, ptr %out, i64 %i) {{\n{self._call('ptr', '%i')}\n}}\n"

    def kernel(self) -> str:
        """The wrapper for the simulator."""
        params = ", ".join(f"ptr addrspace(1) %in{i}" for i in range(len(self.types)))
        return (
            f"define amdgpu_kernel void @kernel_{self.name}({params}, ptr addrspace(1) %out) {{\n"
            f"  %t = call i32 @llvm.amdgcn.workitem.id.x()\n  %i = zext i32 %t to i64\n"
            f"{self._call('ptr addrspace(1)', '%i')}\n}}\n"
        )


def run_both(functions: list[Function], declarations: str = "") -> list[tuple[Any, Any]]:
    """``(simulated, host)`` outputs of each function."""
    host = declarations + "".join(f.definition() + f.host() for f in functions)
    expected = run_on_host(host, [(f.name, f.inputs, f.out.copy()) for f in functions])
    results = []
    for function, want in zip(functions, expected, strict=True):
        text = declarations + function.definition() + function.kernel() + "declare i32 @llvm.amdgcn.workitem.id.x()\n"
        got = function.out.copy()
        simulate(text, f"kernel_{function.name}", grid=1, block=LANES, args=[*function.inputs, got])
        results.append((got, want))
    return results


def interesting(dtype: Any, rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
    """Random values of a dtype with the special ones mixed in."""
    kind = np.dtype(dtype)
    raw = rng.integers(0, 256, (*shape, kind.itemsize), dtype=np.uint8)
    values = raw.reshape(*shape[:-1], -1).view(dtype).reshape(shape)
    if kind.kind == "f":
        small = rng.normal(size=shape) * 100
        values = np.where(rng.random(shape) < 0.5, small, values).astype(dtype)
        special = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 0.5, 2.5], dtype)
    else:
        top = np.iinfo(kind).max
        special = np.array([0, 1, 2, top, top >> 1, (top >> 1) + 1, 7], dtype)
    return np.where(rng.random(shape) < 0.2, rng.choice(special, shape), values).astype(dtype)
