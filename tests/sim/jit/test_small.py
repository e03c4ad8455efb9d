"""Conversions to and from small floats give the same bits on both engines."""

from __future__ import annotations

import gzip
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flyllvm.codegen
from flyllvm.errors import SimError
from flyllvm.sim import matrix, simulate
from flyllvm.target import Target
from tests.sim.both import interesting
from tests.sim.engines import both

pytestmark = [pytest.mark.llvm, pytest.mark.sim]
TABLE = Path(flyllvm.codegen.__file__).with_name("intrinsics.txt.gz")
TARGETS = ("gfx942", "gfx950", "gfx1201", "gfx1250")
DTYPES: dict[str, Any] = {"float": np.float32, "half": np.float16, "bfloat": np.uint16, "i32": np.uint32,
                          "i16": np.uint16, "i64": np.uint64}  # fmt: skip
LANES = 128


def signatures(processor: str) -> list[tuple[str, str, list[str]]]:
    """Name, result and operand types of every conversion that a target has."""
    found = []
    for line in gzip.decompress(TABLE.read_bytes()).decode().splitlines()[1:]:
        name, signature = line.split("\t")[:2]
        short = name.removeprefix("llvm.amdgcn.")
        if not short.startswith("cvt.") or not matrix.supports(short) or matrix.flops(short):
            continue
        known = matrix.find(short)
        if known is not None and processor in known.targets:
            result, _, operands = signature.partition(" (")
            found.append((name, result, re.findall(r"<[^>]*>|[\w.]+", operands[:-1])))
    return found


def array(t: str, rng: Any, count: int = LANES) -> np.ndarray:
    """Values of a type for every lane; floats of all sizes, and specials."""
    width, _, elem = t.strip("<>").rpartition(" x ")
    shape = (count, int(width or 1))
    if elem in ("float", "half"):
        return interesting(DTYPES[elem], rng, shape)
    if elem == "bfloat":
        return (interesting(np.float32, rng, shape).view(np.uint32) >> 16).astype(np.uint16)
    return rng.integers(0, 1 << 8 * np.dtype(DTYPES[elem]).itemsize, shape, dtype=DTYPES[elem])


def immediates(name: str, rng: Any) -> list[tuple[int, ...]]:
    """Sets of constants that an instruction takes: the first, and one more at random."""
    known = matrix.find(name.removeprefix("llvm.amdgcn."))
    assert known is not None
    legal = []
    for numbers in np.ndindex(*(16 if "selector" in what else 4 for what in known.immediates.values())):
        try:
            matrix.prepare(known.name, numbers, wave_size=known.waves[0], target=Target.parse(known.targets[0]))
        except SimError:  # not a legal set
            continue
        legal.append(tuple(int(n) for n in numbers))
    return sorted({legal[0], legal[int(rng.integers(len(legal)))]})


def kernel_of(processor: str, rows: list[tuple[str, str, list[str]]]) -> tuple[str, list[np.ndarray]]:
    """One kernel with all the calls, and its arguments: an array for every operand, then the results."""
    rng = np.random.default_rng(len(rows))
    inputs: dict[str, np.ndarray] = {}
    outputs: list[tuple[str, str]] = []
    body, loaded = [], {}

    def load(t: str, at: int) -> str:
        key = f"{t}#{at}"
        if key not in loaded:
            n = len(inputs)
            inputs[key] = array(t, rng)
            elem = t.strip("<>").rpartition(" x ")[2]
            body.append(f"  %pi{n} = getelementptr {t}, ptr addrspace(1) %i{n}, i32 %t" if "x" not in t else
                        f"  %oi{n} = mul i32 %t, {inputs[key].shape[1] * inputs[key].itemsize}\n"
                        f"  %pi{n} = getelementptr i8, ptr addrspace(1) %i{n}, i32 %oi{n}")  # fmt: skip
            body.append(f"  %x{n} = load {t}, ptr addrspace(1) %pi{n}, align {2 if elem != 'i8' else 1}")
            loaded[key] = f"%x{n}"
        return loaded[key]

    for name, result, types in rows:
        known = matrix.find(name.removeprefix("llvm.amdgcn."))
        assert known is not None
        for numbers in immediates(name, rng):
            constants, operands = iter(numbers), []
            for i, t in enumerate(types):
                operands.append(f"{t} {next(constants)}" if i in known.immediates else f"{t} {load(t, i)}")
            n = len(outputs)
            outputs.append((name, result))
            body.append(f"  %r{n} = call {result} @{name}({', '.join(operands)})")
            size = array(result, rng, 1).nbytes
            body.append(f"  %or{n} = mul i32 %t, {size}")
            body.append(f"  %pr{n} = getelementptr i8, ptr addrspace(1) %o{n}, i32 %or{n}")
            body.append(f"  store {result} %r{n}, ptr addrspace(1) %pr{n}, align 2")
    params = [f"ptr addrspace(1) %i{n}" for n in range(len(inputs))]
    params += [f"ptr addrspace(1) %o{n}" for n in range(len(outputs))]
    text = (
        f"define amdgpu_kernel void @k({', '.join(params)}) {{\n  %t = call i32 @llvm.amdgcn.workitem.id.x()\n"
        + "\n".join(body) + "\n  ret void\n}\n"
    )  # fmt: skip
    return text, [*inputs.values(), *(np.zeros_like(array(result, rng)) for _, result in outputs)]


@pytest.mark.parametrize("processor", TARGETS)
def test_conversions_agree(processor: str) -> None:
    rows = signatures(processor)
    assert len(rows) >= 8
    for at in range(0, len(rows), 16):
        text, args = kernel_of(processor, rows[at : at + 16])
        both(text, grid=1, block=LANES, args=args, target=processor)


def test_a_scale_of_another_lane_that_does_not_run_is_reported_as_by_the_numpy_engine() -> None:
    rows = [row for row in signatures("gfx1250") if row[0].startswith("llvm.amdgcn.cvt.scale.pk8.f32.fp8")][:1]
    text, args = kernel_of("gfx1250", rows)
    errors = []
    for engine in ("numpy", "jit"):
        with pytest.raises(SimError, match="takes scales from other lanes") as caught:
            simulate(text, grid=1, block=100, args=args, target="gfx1250", checks="none", engine=engine)
        errors.append(str(caught.value))
    assert errors[0] == errors[1]
