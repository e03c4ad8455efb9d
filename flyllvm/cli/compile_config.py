"""``flyllvm compile --config``: many kernels into a folder with a manifest."""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, Any

from ..errors import FlyError

if TYPE_CHECKING:
    import argparse

_ALONE = ("arg", "arch", "const", "wave_size", "no_ssa", "no_debug", "timeout")


def run_config(ns: argparse.Namespace) -> int:
    """Compiles and writes the folder.

    Raises:
        FlyError: The file is malformed, or kernels do not compile; nothing is written then.
    """
    from ..codeobject.files import read_text
    from ..compiler.aot import compile_config

    for option in _ALONE:
        if getattr(ns, option):
            raise FlyError(f"--{option.replace('_', '-')} with --config", fix="the configuration says it per kernel")
    if ns.output is None:
        raise FlyError("--config without -o", fix="name the folder that gets the kernels: -o FOLDER")
    try:
        config = json.loads(read_text(ns.config, "a JSON configuration"))
    except ValueError as e:
        raise FlyError(f"not valid JSON: {e}", ns.config, "correct it") from None
    if ns.no_cache:
        os.environ["FLYLLVM_CACHE"] = "0"
    base = os.path.dirname(os.path.abspath(ns.config))
    loaded: dict[str, Any] = {}

    def load(spec: str) -> Any:
        from .load_kernel import load_python

        if spec not in loaded:
            loaded[spec] = load_python(os.path.join(base, spec))
        return loaded[spec]

    def guard(spec: str) -> Any:
        from .load_kernel import authors_errors

        return authors_errors(os.path.join(base, spec))

    rows = compile_config(config, load, ns.output, ns.config, guard)
    if ns.json:
        json.dump({"folder": ns.output, "kernels": rows}, sys.stdout)
        sys.stdout.write("\n")
        return 0
    for row in rows:
        print(
            f"{row['name']} for {row['target']}: {row['vgpr_count']} VGPRs, {row['agpr_count']} AGPRs, "
            f"{row['sgpr_count']} SGPRs, {row['lds_bytes']} bytes LDS, {row['scratch_bytes']} bytes scratch, "
            f"{row['spills']} spills" + (", from the cache" if row["from_cache"] else "")
        )
        if ns.time:
            print(
                f"  {sum(row['timings_ms'].values()):.1f} ms: "
                + ", ".join(f"{k} {v:.1f}" for k, v in row["timings_ms"].items())
            )
    print(f"{os.path.join(ns.output, 'manifest.json')}: {len(rows)} kernels")
    return 0
