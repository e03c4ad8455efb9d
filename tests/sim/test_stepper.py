"""Stopping a run, and looking at lanes, values and fragments."""

from __future__ import annotations

import numpy as np
import pytest

from flyllvm.errors import LaunchError, SimError
from flyllvm.sim import Simulator
from tests.sim.kernels import STORE_OUT, exchange, gemm, kernel, line_of
from tests.sim.test_parser import _DEBUG

pytestmark = pytest.mark.sim


def _gemm() -> tuple[Simulator, list]:
    rng = np.random.default_rng(0)
    a, b = rng.integers(-4, 5, (32, 32)).astype(np.float16), rng.integers(-4, 5, (16, 32)).astype(np.float16)
    args = [a, b, np.zeros((32, 16), np.float32), 32]
    return Simulator(gemm(), grid=1, block=128, args=args, source_name="k.ll"), args


def test_stops_before_a_line_and_shows_values() -> None:
    run, _ = _gemm()
    assert run.text == "%t = call i32 @llvm.amdgcn.workitem.id.x()"
    line = line_of(gemm(), "%d = call")
    assert run.run_to(line)
    assert run.where == f"k.ll:{line}"
    assert run.value("i").max() == 0 and run.value("%l15", wave=1, lane=18) == 2
    assert run.value("fa").shape == (2, 64, 4) and run.value("fa", wave=0).shape == (64, 4)
    assert run.run_to(line) and (run.value("i") == 16).all()


def test_fragments_are_shown_as_the_matrices_they_represent() -> None:
    run, (a, b, c, _) = _gemm()
    run.run_to(line_of(gemm(), "%d = call"))
    assert np.array_equal(run.matrix("fa", wave=1), a[16:, :16])
    assert np.array_equal(run.matrix("fb"), b[:, :16].T)
    run.step()
    want = a[:, :16].astype(np.float32) @ b[:, :16].astype(np.float32).T
    assert np.array_equal(run.matrix("d", wave=0), want[:16])
    assert np.array_equal(run.matrix("d", wave=1), want[16:])
    report = run.run()
    assert np.array_equal(c, a.astype(np.float32) @ b.astype(np.float32).T)
    assert report.matrix_flops == 2 * 32 * 16 * 32 and run.where is None and not run.run_to(6)


def test_lanes_at_a_stop_in_a_branch() -> None:
    text = kernel("%c = icmp ult i32 %t, 70\nbr i1 %c, label %go, label %end\ngo:\n%x = add i32 %t, 1\nbr label %end\n"
                  "end:\n" + STORE_OUT.format(value="%t"))  # fmt: skip
    run = Simulator(text, grid=2, block=128, args=[np.zeros(128, np.uint32)])
    run.run_to(line_of(text, "%x = add"))
    assert run.lanes().sum() == 70 and run.lanes(1)[1].sum() == 6
    run.step()
    assert run.value("x", workgroup=1, wave=1, lane=2) == 67


def test_places_in_the_author_source_stop_too() -> None:
    for place in ("lib.py:11", "kernel.py:20"):
        run = Simulator(_DEBUG, grid=1, block=1, args=[np.zeros(65, np.uint32)])
        assert run.run_to(place) and "store i32 1" in str(run.text)


def test_faults_while_stepping_are_the_same_errors() -> None:
    run = Simulator(exchange(before=""), grid=1, block=256, args=[np.zeros(256, np.uint32)])
    with pytest.raises(SimError, match="LDS race"):
        run.run()


def test_wrong_questions_are_refused() -> None:
    run, _ = _gemm()
    with pytest.raises(SimError, match="use the name it has in the LLVM IR"):
        run.value("nothing")
    with pytest.raises(SimError, match="step further"):
        run.value("d")
    with pytest.raises(SimError, match="name an operand or a result of one"):
        run.matrix("t")
    with pytest.raises(LaunchError, match="use a smaller grid"):
        Simulator(exchange(), grid=100000, block=256, args=[np.zeros(256, np.uint32)])


def test_the_first_instruction_is_a_place_too() -> None:
    run, _ = _gemm()
    first = line_of(gemm(), "%t = call")
    assert run.run_to(first) and run.text == "%t = call i32 @llvm.amdgcn.workitem.id.x()"
    assert not run.run_to(first)  # the next one there: it is not in a loop


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda run: run.run_to(1), "no instruction of the kernel is at 1\n.*one that is: 6"),
        (lambda run: run.run_to("other.py:3"), r"no instruction of the kernel is at 'other.py:3'\n.*'k\.ll:6'"),
        (lambda run: run.run_to(None), "None is no place\n.*pass a line"),
        (lambda run: run.value("%t", wave=2), "no wave 2\n.*from 0 to 1"),
        (lambda run: run.value("%t", lane=-1), "no lane -1\n.*from 0 to 63"),
        (lambda run: run.lanes(7), "no workgroup 7\n.*from 0 to 0"),
        (lambda run: run.matrix("fa", wave="a"), "no wave 'a'"),
    ],
)
def test_places_that_are_none_are_refused(ask: object, message: str) -> None:
    run, _ = _gemm()
    run.step(3)
    with pytest.raises(SimError, match=message):
        ask(run)  # type: ignore[operator]


def test_a_run_in_steps_has_no_engine() -> None:
    with pytest.raises(LaunchError, match="leave it out, or call simulate"):
        Simulator(gemm(), grid=1, block=128, args=[], engine="jit")
