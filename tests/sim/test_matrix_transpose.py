"""Transposing loads against the published bit maps."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from flyllvm.errors import SimError
from flyllvm.sim import matrix_transpose
from flyllvm.target import Target
from tests.sim import probes

COPIES = {row["inst"]: row for row in json.loads(probes.ORACLE.read_text())["copies"]}
# The table's instruction of each intrinsic.
INSTRUCTION = {
    "ds.read.tr16.b64": "ds_read_b64_tr_b16",
    "ds.read.tr8.b64": "ds_read_b64_tr_b8",
    "ds.read.tr4.b64": "ds_read_b64_tr_b4",
    "ds.read.tr6.b96": "ds_read_b96_tr_b6",
    "ds.load.tr16.b128": "ds_load_tr16_b128",
    "global.load.tr.b128": "global_load_tr16_b128",
    "ds.load.tr8.b64": "ds_load_tr8_b64",
    "global.load.tr.b64": "global_load_tr8_b64",
}


def reference(entry: dict[str, Any], data: np.ndarray) -> np.ndarray:
    """The exchange bit by bit: result bit ``b`` of lane ``i`` is bit ``dst(i, b)`` of the group's reads, end to end."""
    table = probes.layout_table(entry["dst"])
    group = entry["lanes_per_group"]
    bits = np.unpackbits(data, axis=2, bitorder="little").reshape(data.shape[0], -1, group * entry["bits"])
    return np.packbits(bits[:, :, table].reshape(*data.shape[:2], -1), axis=2, bitorder="little")


def test_every_published_map_has_an_intrinsic() -> None:
    assert sorted(INSTRUCTION.values()) == sorted(COPIES)
    disputed = {name for name, load in matrix_transpose.LOADS.items() if load.disputed}
    assert set(INSTRUCTION) | disputed == set(matrix_transpose.LOADS) and not set(INSTRUCTION) & disputed


@pytest.mark.parametrize("name", INSTRUCTION)
def test_lane_formulas_equal_the_published_bit_maps(name: str) -> None:
    entry = COPIES[INSTRUCTION[name]]
    for processor in entry["arch"]:
        target = Target.parse(processor)
        load = matrix_transpose.prepare(f"{name}.v2i32", wave_size=target.wave_size, target=target)
        assert (load.group, load.lane_bytes * 8) == (entry["lanes_per_group"], entry["bits"])
        data = np.random.default_rng(0).integers(0, 256, (3, target.wave_size, load.lane_bytes), dtype=np.uint8)
        np.testing.assert_array_equal(load(data), reference(entry, data))
    # The published table has the 8-bit global load of gfx12 as not measured; it was, by others.
    assert set(load.targets) - set(entry["arch"]) <= {"gfx1200", "gfx1201"}


def test_a_row_major_tile_of_16_bit_values_comes_out_by_columns() -> None:
    """gfx950, one group: lane l reads 4 of the 16 values of row l // 4 and gets 4 rows of column l."""
    load = matrix_transpose.LOADS["ds.read.tr16.b64"]
    tile = np.arange(4 * 16, dtype=np.uint16).reshape(4, 16)
    got = load(tile.reshape(1, 16, 4).view(np.uint8)).view(np.uint16)
    np.testing.assert_array_equal(got[0], tile.T)


@pytest.mark.parametrize(
    "name, processor, wave, fix",
    [
        ("ds.load.tr4.b64", "gfx1201", 32, "known for: gfx1250"),
        ("global.load.tr.b64", "gfx1201", 64, "wave_size=32"),
        ("ds.read.tr8.b64", "gfx942", 64, "known for: gfx950"),
        ("global.load.tr.b128", "gfx1201", 64, "wave_size=32"),
    ],
)
def test_forms_without_a_public_lane_map_are_refused(name: str, processor: str, wave: int, fix: str) -> None:
    assert matrix_transpose.is_transposing(name + ".v2i32")
    with pytest.raises(SimError, match=fix):
        matrix_transpose.prepare(name, wave_size=wave, target=Target.parse(processor, wave))


def test_data_of_the_wrong_size_is_refused() -> None:
    with pytest.raises(SimError, match="8 bytes per lane in whole groups of 16 lanes"):
        matrix_transpose.LOADS["ds.read.tr8.b64"](np.zeros((1, 64, 4), np.uint8))
    assert not matrix_transpose.is_transposing("ds.read.something")
