"""Host code of the simulator, compiled and run in the compile worker."""

from __future__ import annotations

from ..errors import CodegenError
from .client import default_pool, save_ir
from .process import WorkerDied

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

#: Code generation level: 1 compiles in half the time of 2, for code that is a fifth slower.
OPT_LEVEL = 2


def load(key: str, ir_text: str, state_bytes: int, timeout: float) -> float:
    """Compiles a module of host code; returns the milliseconds it took.

    Raises:
        CodegenError: LLVM refused it, ended its process, or took too long.
    """
    request = {"op": "jit_load", "key": key, "ir": ir_text, "state_bytes": state_bytes, "opt_level": OPT_LEVEL}
    try:
        return float(_call(request, timeout)["wall_ms"])
    except CodegenError as e:
        raise CodegenError(f"{e.what}; the module is saved as {save_ir(ir_text)}", fix=e.fix) from None


def run(
    key: str, path: str, size: int, jobs: Sequence[tuple[int, int, list[tuple[int, int]]]], timeout: float
) -> list[tuple[int, int]] | None:
    """Runs workgroups of loaded code on shared memory, as `host.run` says.

    Raises:
        CodegenError: The code ended the worker or took too long.
    """
    answer = _call({"op": "jit_run", "key": key, "path": path, "size": size, "jobs": list(jobs)}, timeout)
    return None if answer.get("unknown") else [(int(status), int(first)) for status, first in answer["ends"]]


def _call(request: dict[str, Any], timeout: float) -> dict[str, Any]:
    try:
        answer, _ = default_pool().call(request, timeout)
    except WorkerDied as e:
        said = f":\n{e.words}" if e.words else ""
        raise CodegenError(f"the worker that runs host code {e.how}{said}", fix="use engine='numpy'") from None
    if "error" in answer:
        raise CodegenError(f"host code: {answer['error']}", fix="use engine='numpy'")
    return answer
