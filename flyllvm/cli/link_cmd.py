"""``flyllvm link``: an object file into a code object."""

from __future__ import annotations

import os

from ..codeobject import CodeObject, link
from ..codeobject.files import named, read_file
from ..errors import LinkError


def run(path: str, out: str, *, json: bool) -> int:
    """Links ``path`` into ``out`` and prints a summary.

    The output is written whole or not at all.

    Raises:
        LinkError: The input cannot be read or linked, or the output cannot be written.
    """
    if os.path.exists(out) and os.path.samefile(path, out):
        raise LinkError(f"the output {out} is the input", fix="give another name with -o")
    code = named(path, lambda: CodeObject.from_image(link(read_file(path))))
    code.save(out)
    if json:
        from json import dumps

        body = {
            "output": out,
            "size_bytes": len(code.image),
            "target": str(code.target_id),
            "code_object_version": code.code_object_version,
            "kernels": list(code.kernels),
        }
        print(dumps(body))
    else:
        names = ", ".join(code.kernels) or "no kernels"
        version = code.code_object_version
        print(f"{out}: {len(code.image)} bytes for {code.target_id}, code object version {version}: {names}")
    return 0
