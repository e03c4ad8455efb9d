"""Many processes with many threads each compile into one cache."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

KERNEL = """
import flyllvm.compiler as flyc
import flyllvm.expr as fx

@flyc.kernel(known_block_size=(64, 1, 1))
def add(x: fx.Tensor, n: int):
    i = fx.thread_idx.x
    x[i] = x[i] + n
"""

# One round in ten first damages or removes an entry under the others' hands.
RACE = """
import os, random, sys, threading
sys.path.insert(0, {folder!r})
import mine
import flyllvm.compiler as flyc

rng = random.Random({seed})
rng_lock = threading.Lock()
images = {{}}
wrong = []

def one(n, cache=True):
    return flyc.compile(mine.add, "i32[64]", arch="gfx942", constants={{"n": n}}, cache=cache).code_object.image

for n in range({kernels}):
    images[n] = one(n, cache=False)

def work():
    for _ in range({rounds}):
        with rng_lock:
            n, harm = rng.randrange({kernels}), rng.random()
        if harm < 0.1:
            names = [e.path for e in os.scandir({cache!r} + "/v1") if e.name.endswith(".entry")]
            if names:
                try:
                    path = names[n % len(names)]
                    os.truncate(path, os.path.getsize(path) // 2) if harm < 0.05 else os.unlink(path)
                except FileNotFoundError:
                    pass
        try:
            if one(n) != images[n]:
                wrong.append(n)
        except BaseException as e:
            wrong.append(repr(e))

threads = [threading.Thread(target=work) for _ in range({threads})]
for t in threads: t.start()
for t in threads: t.join()
print("wrong:", wrong)
"""


@pytest.mark.slow
@pytest.mark.llvm
def test_no_process_gets_a_torn_or_wrong_image(tmp_path: Path, full: bool) -> None:
    (tmp_path / "mine.py").write_text(KERNEL)
    processes, threads, rounds, kernels = (8, 8, 16, 6) if full else (3, 4, 8, 3)
    cache = tmp_path / "cache"
    environment = {**os.environ, "FLYLLVM_CACHE": "1", "FLYLLVM_CACHE_DIR": str(cache), "PYTHONPATH": str(ROOT)}
    running = []
    for seed in range(processes):
        code = RACE.format(
            folder=str(tmp_path), cache=str(cache), seed=seed, kernels=kernels, rounds=rounds, threads=threads
        )
        command = [sys.executable, "-B", "-c", code]
        running.append(
            subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        )
    for process in running:
        said, errors = process.communicate(timeout=3000)
        assert process.returncode == 0, errors
        assert said.strip() == "wrong: []"
    assert not list((cache / "v1").glob("*.part"))
