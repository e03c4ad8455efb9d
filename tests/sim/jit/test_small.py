"""Conversions to and from small floats give the same bits on both engines."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flyllvm.codegen
from flyllvm.errors import SimError
from flyllvm.sim import matrix, mode, simulate
from flyllvm.target import Target
from tests.sim.engines import both, copies
from tests.sim.jit.calls import LANES, Row, kernel_of

pytestmark = [pytest.mark.llvm, pytest.mark.sim]
TABLE = Path(flyllvm.codegen.__file__).with_name("intrinsics.txt")
TARGETS = ("gfx942", "gfx950", "gfx1201", "gfx1250")


def signatures(processor: str) -> list[tuple[str, str, list[str]]]:
    """Name, result and operand types of every conversion that a target has."""
    found = []
    for line in TABLE.read_text(encoding="ascii").splitlines()[1:]:
        name, signature = line.split("\t")[:2]
        short = name.removeprefix("llvm.amdgcn.")
        if not short.startswith("cvt.") or not matrix.supports(short) or matrix.flops(short):
            continue
        known = matrix.find(short)
        if known is not None and processor in known.targets:
            result, _, operands = signature.partition(" (")
            found.append((name, result, re.findall(r"<[^>]*>|[\w.]+", operands[:-1])))
    return found


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


def rows_of(signed: list[tuple[str, str, list[str]]]) -> list[Row]:
    """Calls of conversions with two sets of constants each."""
    rng, rows = np.random.default_rng(len(signed)), []
    for name, result, types in signed:
        known = matrix.find(name.removeprefix("llvm.amdgcn."))
        assert known is not None
        for numbers in immediates(name, rng):
            constants, places = iter(numbers), iter(range(len(types)))
            operands = [
                f"{t} {next(constants)}" if i in known.immediates else f"{t} {{{next(places)}}}"
                for i, t in enumerate(types)
            ]
            kept = [t for i, t in enumerate(types) if i not in known.immediates]
            rows.append((f"call {result} @{name}({', '.join(operands)})", result, kept))
    return rows


@pytest.mark.parametrize("processor", TARGETS)
def test_conversions_agree(processor: str) -> None:
    rows = signatures(processor)
    assert len(rows) >= 8
    for at in range(0, len(rows), 16):
        text, args = kernel_of(rows_of(rows[at : at + 16]))
        both(text, grid=1, block=LANES, args=args, target=processor)


def test_a_constant_scale_is_that_of_lanes_that_do_not_run_too() -> None:
    rows = [row for row in signatures("gfx1250") if row[0].startswith("llvm.amdgcn.cvt.scale.pk8.f32.")]
    text, args = kernel_of([(re.sub(r"i32 \{1\}", "i32 130", t), result, types[:1])
                            for t, result, types in rows_of(rows)])  # fmt: skip
    assert text.count("i32 130") >= 3
    both(text, grid=1, block=100, args=args, target="gfx1250")


def finite(value: np.ndarray) -> np.ndarray:
    """The array with large numbers for infinities, as no program knows what becomes of those."""
    if value.dtype.kind == "f":
        value[np.isinf(value)] = np.finfo(value.dtype).max / 2
    return value


@pytest.mark.parametrize("processor", TARGETS)
def test_conversions_to_8_bits_that_saturate_agree(processor: str) -> None:
    to_small = [row for row in signatures(processor) if mode.TO_SMALL.match(row[0]) and "bf16" not in row[0]]
    assert len(to_small) >= 4
    for row in to_small:
        rows = rows_of([row])
        text, args = kernel_of(rows)
        args = [finite(a) for a in args]
        if ".scalef32." in row[0]:
            scale = [a for a in args[: -len(rows)] if a.dtype == np.float32 and a.size == LANES][-1]
            scale[:] = np.exp2(np.random.default_rng(3).integers(-8, 4, scale.shape))
        plain = copies(args)
        simulate(text, grid=1, block=LANES, args=plain, target=processor, checks="none")
        text = text.replace("%t = call", "call void @llvm.amdgcn.s.setreg(i32 1473, i32 1)\n  %t = call", 1)
        both(text, grid=1, block=LANES, args=args, target=processor)
        assert any((a != b).any() for a, b in zip(args, plain, strict=True)), "nothing overflows"


def test_what_is_not_known_of_saturation_is_left_to_the_first_engine() -> None:
    rows = [row for row in signatures("gfx942") if row[0] == "llvm.amdgcn.cvt.pk.fp8.f32"]
    text, args = kernel_of(rows_of(rows))
    text = text.replace("%t = call", "call void @llvm.amdgcn.s.setreg(i32 1473, i32 1)\n  %t = call", 1)
    report = simulate(text, grid=1, block=LANES, args=args, target="gfx942", checks="none", engine="jit")
    assert report.engine == "numpy" and "an infinity is converted" in report.warnings[0]
    half = text.replace("ret void", "%h = fptrunc float %xi0_float to half\n  ret void")
    with pytest.raises(SimError, match=r"f16 results under MODE\.FP16_OVFL"):
        simulate(half, grid=1, block=LANES, args=args, target="gfx942", checks="none", engine="jit")


def test_a_scale_of_another_lane_that_does_not_run_is_reported_as_by_the_numpy_engine() -> None:
    rows = [row for row in signatures("gfx1250") if row[0].startswith("llvm.amdgcn.cvt.scale.pk8.f32.fp8")][:1]
    text, args = kernel_of(rows_of(rows))
    errors = []
    for engine in ("numpy", "jit"):
        with pytest.raises(SimError, match="takes scales from other lanes") as caught:
            simulate(text, grid=1, block=100, args=args, target="gfx1250", checks="none", engine=engine)
        errors.append(str(caught.value))
    assert errors[0] == errors[1]
