"""A sweep on a cluster of Dask: workers that are processes of their own."""

from __future__ import annotations

from pathlib import Path

import pytest

import flyllvm
from flyllvm.compiler.sweep import grid_of
from tests.compiler.sweep_kernels import add_one

ROOT = Path(__file__).parents[2]


# Dask's own warnings are not ours.
@pytest.mark.filterwarnings("ignore")
@pytest.mark.slow
@pytest.mark.llvm
def test_a_dask_cluster_is_an_executor_like_any_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import distributed

    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.chdir(tmp_path)
    configs = grid_of(repeat=[2, 0, -1])
    with (
        distributed.LocalCluster(n_workers=1, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        made = flyllvm.sweep(
            add_one, configs, "i32[128]", arch="gfx942", executor=client.get_executor(), rank="code",
            results=tmp_path / "results.jsonl",
        )  # fmt: skip
    assert [t.config["repeat"] for t in made.trials] == [0, 2, -1]
    assert made.trials[2].error == "ValueError: a configuration that cannot be traced"
    here = flyllvm.sweep(add_one, configs[:2], "i32[128]", arch="gfx942", rank="code")
    assert [t.facts["code_bytes"] for t in here.trials] == [t.facts["code_bytes"] for t in made.trials[:2]]
    again = flyllvm.sweep(add_one, configs, "i32[128]", arch="gfx942", results=tmp_path / "results.jsonl")
    assert all(t.resumed for t in again.trials)
