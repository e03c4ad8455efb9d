"""`CodeObject`: a linked image with what is known about it."""

from __future__ import annotations

from ..errors import LinkError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os

    from ..target import Target
    from .info import CodeObjectInfo
    from .kernel import KernelInfo
    from .target_id import TargetId


class CodeObject:
    """A linked code object, ready to be loaded or saved.

    Args:
        image: An image that `from_image` has accepted once, here or in another process.
        info: What it says about itself; by default it is read when it is asked for.

    Attributes:
        image: The bytes of the ELF file.
    """

    __slots__ = ("_info", "image")

    def __init__(self, image: bytes, info: CodeObjectInfo | None = None) -> None:
        self.image = image
        self._info = info

    @staticmethod
    def from_image(image: bytes) -> CodeObject:
        """Reads a linked image.

        Raises:
            LinkError: Not a code object, damaged, or not linked yet.
        """
        made = CodeObject(bytes(image))
        if not made.info.linked:
            raise LinkError("the file is an object file, not a linked code object", fix="link it first: flyllvm.link")
        return made

    @property
    def info(self) -> CodeObjectInfo:
        """What the file says about itself."""
        if self._info is None:
            from .reader import inspect

            self._info = inspect(self.image)
        return self._info

    @staticmethod
    def load(path: str | os.PathLike[str]) -> CodeObject:
        """Reads a ``.hsaco`` file.

        Raises:
            LinkError: The file cannot be read, or `from_image` refuses it.
        """
        from .files import named, read_file

        return named(path, lambda: CodeObject.from_image(read_file(path)))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the image; the file is either complete or untouched.

        Raises:
            LinkError: The file cannot be written.
        """
        from .files import write_file

        write_file(path, self.image)

    @property
    def target_id(self) -> TargetId:
        """Processor and features as the file names them, generic targets included."""
        return self.info.target

    @property
    def target(self) -> Target:
        """The target; its wave size is that of the kernels where they agree.

        Raises:
            TargetError: A processor that flyllvm has no facts about; `target_id` still names it.
        """
        from ..target import Target

        waves = {k.wave_size for k in self.kernels.values()}
        return Target.parse(str(self.info.target), waves.pop() if len(waves) == 1 else None)

    @property
    def kernels(self) -> dict[str, KernelInfo]:
        """Name → kernel."""
        return self.info.kernels

    @property
    def code_object_version(self) -> int:
        """Code object version, 4, 5 or 6."""
        return self.info.code_object_version

    @property
    def metadata(self) -> dict[str, object]:
        """The metadata note as plain data."""
        return self.info.metadata

    def __repr__(self) -> str:
        return f"CodeObject({str(self.info.target)!r}, kernels={list(self.kernels)}, {len(self.image)} bytes)"


def load(path: str | os.PathLike[str]) -> CodeObject:
    """Reads a ``.hsaco`` file; see `CodeObject.load`."""
    return CodeObject.load(path)
