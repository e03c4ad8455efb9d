"""Kernels of many independent instructions on operands from memory, to compare the engines with."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.sim.both import interesting

DTYPES: dict[str, Any] = {"float": np.float32, "half": np.float16, "double": np.float64, "bfloat": np.uint16,
                          "i1": np.bool_, "i8": np.uint8, "i16": np.uint16, "i32": np.uint32,
                          "i64": np.uint64}  # fmt: skip
LANES = 128
#: An instruction with ``{0}``, ``{1}``... for its operands, the type of its result, and those of the operands.
Row = tuple[str, str, list[str]]


def array(t: str, rng: Any, count: int = LANES) -> np.ndarray:
    """Values of a type for every lane; floats of all sizes, and specials."""
    width, _, elem = t.strip("<>").rpartition(" x ")
    shape = (count, int(width or 1))
    if elem in ("float", "half", "double"):
        return interesting(DTYPES[elem], rng, shape)
    if elem == "bfloat":
        return (interesting(np.float32, rng, shape).view(np.uint32) >> 16).astype(np.uint16)
    if elem == "i1":
        return rng.integers(0, 2, shape).astype(bool)
    return rng.integers(0, 1 << 8 * np.dtype(DTYPES[elem]).itemsize, shape, dtype=DTYPES[elem])


def kernel_of(rows: list[Row], attrs: str = "") -> tuple[str, list[np.ndarray]]:
    """One kernel with all the instructions, and its arguments: an array for every operand, then the results."""
    rng = np.random.default_rng(len(rows))
    inputs: dict[str, np.ndarray] = {}
    body: list[str] = []
    outputs: list[np.ndarray] = []

    def place(name: str, values: np.ndarray) -> str:
        body.append(f"  %o{name} = mul i32 %t, {values.shape[1] * values.itemsize}")
        body.append(f"  %p{name} = getelementptr i8, ptr addrspace(1) %{name}, i32 %o{name}")
        return f"ptr addrspace(1) %p{name}, align 1"

    def load(t: str, at: int) -> str:
        name = f"i{at}_" + "".join(c for c in t if c.isalnum())
        if name not in inputs:
            inputs[name] = array(t, rng)
            body.append(f"  %x{name} = load {t}, {place(name, inputs[name])}")
        return f"%x{name}"

    for n, (text, result, types) in enumerate(rows):
        body.append(f"  %r{n} = {text.format(*(load(t, i) for i, t in enumerate(types)))}")
        outputs.append(np.zeros_like(array(result, rng)))
        body.append(f"  store {result} %r{n}, {place(f'out{n}', outputs[-1])}")
    names = [*inputs, *(f"out{n}" for n in range(len(rows)))]
    text = (
        f"define amdgpu_kernel void @k({', '.join(f'ptr addrspace(1) %{n}' for n in names)}) {attrs} {{\n"
        "  %t = call i32 @llvm.amdgcn.workitem.id.x()\n" + "\n".join(body) + "\n  ret void\n}\n"
    )
    return text, [*inputs.values(), *outputs]
