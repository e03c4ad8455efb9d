"""What an executor runs: one configuration compiled, and its facts.  Everything that goes in or out can be pickled."""

from __future__ import annotations

import importlib
import sys

from ..errors import CodegenError, FlyError
from ..target import Target
from .kernel import KernelFunction

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .artifact import Artifact

#: (module, file, name): how another process finds a kernel.
Reference = tuple[str, str | None, str]
_LOADED: dict[str, Any] = {}


def reference_to(kernel: KernelFunction) -> Reference:
    """How another process finds a kernel.

    Raises:
        CodegenError: The kernel is not a global name of a module or file.
    """
    module, name = kernel.fn.__module__, kernel.fn.__qualname__
    home = sys.modules.get(module)
    if home is None or getattr(home, name, None) is not kernel:
        raise CodegenError(
            f"the kernel {kernel.name} has no global name, so that no other process can find it",
            fix="define it at the top of a module, or sweep with threads",
        )
    path = getattr(home, "__file__", None) if module == "__main__" else None
    if module == "__main__" and path is None:
        raise CodegenError(f"the kernel {kernel.name} is in no file", fix="put it into a module, or sweep with threads")
    return module, path, name


def find(reference: Reference) -> KernelFunction:
    """The kernel of a reference, in this process."""
    module, path, name = reference
    if path is None:
        home: Any = importlib.import_module(module)
    else:
        home = _LOADED.get(path)
        if home is None:
            from importlib.util import module_from_spec, spec_from_file_location

            # Not as __main__: the program's main part must not run again.
            spec = spec_from_file_location("__flyllvm_main__", path)
            if spec is None or spec.loader is None:
                raise CodegenError(f"{path} cannot be imported", fix="give the program a name that ends in .py")
            home = module_from_spec(spec)
            sys.modules["__flyllvm_main__"] = home
            spec.loader.exec_module(home)
            _LOADED[path] = home
    found: KernelFunction = getattr(home, name)
    return found


def run_task(
    kernel: KernelFunction | Reference, specs: tuple[Any, ...], target: Any, config: dict[str, Any]
) -> tuple[dict[str, Any], str | None]:
    """(facts, error) of a configuration; errors travel as text, which every executor can carry."""
    try:
        return facts_of(_compiled(kernel, specs, target, config)), None
    except FlyError as e:
        return {}, str(e)
    except Exception as e:
        return {}, f"{type(e).__name__}: {e}"  # the author's own


def _compiled(
    kernel: KernelFunction | Reference, specs: tuple[Any, ...], target: Any, config: dict[str, Any]
) -> Artifact:
    from .compile import compile
    from .sweep import split_config

    fn = kernel if isinstance(kernel, KernelFunction) else find(kernel)
    where = target if isinstance(target, Target) else Target.parse(*target)
    constants, options = split_config(fn, config)
    made: Artifact = compile(fn, *specs, arch=where, constants=constants, **options)
    return made


def facts_of(artifact: Artifact) -> dict[str, Any]:
    """What is ranked, as plain data."""
    from .sweep_score import waves_per_simd

    info = artifact.code_object.kernels[artifact.name]
    return {
        "vgpr_count": info.vgpr_count,
        "agpr_count": info.agpr_count,
        "sgpr_count": info.sgpr_count,
        "spills": info.vgpr_spill_count + info.sgpr_spill_count,
        "scratch_bytes": info.scratch_bytes,
        "lds_bytes": info.lds_bytes,
        "waves_per_simd": waves_per_simd(artifact),
        "code_bytes": info.code_bytes,
        "compile_ms": round(sum(artifact.timings.stages.values()), 3),
        "from_cache": artifact.from_cache is not None,
    }
