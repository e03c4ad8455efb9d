"""The configuration file of ``flyllvm compile --config``: a list of kernels with arguments, values and targets."""

from __future__ import annotations

from ..errors import CodegenError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

_FIELDS = {"file": str, "name": str, "args": list, "arch": (str, list), "constants": dict, "each": dict,
           "options": dict}  # fmt: skip
_TOP = ("kernels", "defaults", "llvm_ir")


class Job:
    """One kernel with one set of compile-time values for one target."""

    __slots__ = ("arch", "args", "constants", "file", "name", "options")

    def __init__(
        self, file: str, name: str, args: list[str], arch: str, constants: dict[str, Any], options: dict[str, Any]
    ) -> None:
        self.file = file
        self.name = name
        self.args = args
        self.arch = arch
        self.constants = constants
        self.options = options

    def compile(self, kernel: Any) -> list[tuple[str, Any]]:
        """(name, artifact) of the kernel, or of every kernel that a host function launches."""
        from .compile import compile

        made = compile(kernel, *self.args, arch=self.arch, constants=self.constants, **self.options)
        several = getattr(made, "artifacts", None)
        if several is None:
            return [(self.name, made)]
        if len(several) == 1:
            return [(self.name, next(iter(several.values())))]
        return [(f"{self.name}.{kernel}", artifact) for kernel, artifact in several.items()]


def jobs_of(config: Mapping[str, Any], where: str) -> list[Job]:
    """Everything that a configuration asks for.

    ``each`` maps compile-time values to lists; every combination is compiled, and ``name`` may hold ``{value}``.

    Raises:
        CodegenError: The configuration is malformed.
    """
    if not isinstance(config, dict) or not isinstance(config.get("kernels"), list) or not config["kernels"]:
        raise CodegenError(
            "the configuration lists no kernels",
            where,
            'write {"kernels": [{"file": "gemm.py:gemm", "args": ["f16[?,?]"], "arch": ["gfx942"]}]}',
        )
    unknown = set(config) - set(_TOP)
    if unknown:
        raise CodegenError(f"unknown field {sorted(unknown)[0]!r}", where, f"fields are: {', '.join(_TOP)}")
    defaults = config.get("defaults", {})
    _check(defaults, where, "defaults")
    jobs: list[Job] = []
    for i, given in enumerate(config["kernels"]):
        _check(given, where, f"kernels[{i}]")
        jobs += _expand({**defaults, **given}, where, f"kernels[{i}]")
    names = [(job.name, job.arch) for job in jobs]
    for name in names:
        if names.count(name) > 1:
            raise CodegenError(
                f"two kernels are named {name[0]} for {name[1]}", where, 'put the value into the name: "gemm_{BM}"'
            )
    return jobs


def _check(entry: Any, where: str, what: str) -> None:
    if not isinstance(entry, dict):
        raise CodegenError(f"{what} is {type(entry).__name__}", where, "write an object")
    for field, value in entry.items():
        if field not in _FIELDS:
            raise CodegenError(f"{what} has a field {field!r}", where, f"fields are: {', '.join(_FIELDS)}")
        if not isinstance(value, _FIELDS[field]):  # type: ignore[arg-type]
            raise CodegenError(f"{what}.{field} = {value!r}", where, "see flyllvm compile --help, --config")


def _expand(entry: Mapping[str, Any], where: str, what: str) -> Iterator[Job]:
    for field in ("file", "arch"):
        if not entry.get(field):
            raise CodegenError(f"{what} names no {field}", where, f"add {field}, there or in defaults")
    targets = [entry["arch"]] if isinstance(entry["arch"], str) else entry["arch"]
    name = entry.get("name") or entry["file"].rpartition(":")[2].rpartition("/")[2].removesuffix(".py")
    for values in _combinations(entry.get("each", {}), where, what):
        constants = {k: _frozen(v) for k, v in {**entry.get("constants", {}), **values}.items()}
        try:
            full = name.format(**constants)
        except (KeyError, IndexError, ValueError) as e:
            known = ", ".join(constants) or "none"
            raise CodegenError(f"{what}.name = {name!r}: no value {e}", where, f"the values are: {known}") from None
        for arch in targets:
            yield Job(entry["file"], full, list(entry.get("args", [])), arch, constants, dict(entry.get("options", {})))


def _combinations(each: Mapping[str, Any], where: str, what: str) -> list[dict[str, Any]]:
    out: list[dict[str, Any]] = [{}]
    for name, values in each.items():
        if not isinstance(values, list) or not values:
            raise CodegenError(f"{what}.each.{name} = {values!r}", where, "write a list of values")
        out = [{**made, name: value} for made in out for value in values]
    return out


def _frozen(value: Any) -> Any:
    return tuple(_frozen(v) for v in value) if isinstance(value, list) else value
