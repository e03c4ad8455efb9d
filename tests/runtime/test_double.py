"""The double itself: it refuses what a HIP runtime refuses, and broken images cannot hurt it."""

from __future__ import annotations

import ctypes
import random
import struct
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from flyllvm.codeobject import link
from flyllvm.codeobject.elf_reader import read_elf
from flyllvm.runtime import DeviceArray, Event, HipError, Stream
from flyllvm.runtime.hip import hip
from tests.codeobject.images import NAMES, lld_bytes, object_bytes
from tests.hip_double.build import SOURCES, Double, compiler
from tests.hip_double.fixtures import restart

IMAGE = link(object_bytes("vector_add_gfx942"))


def patched(at: int, raw: bytes, data: bytes = IMAGE) -> bytes:
    return data[:at] + raw + data[at + len(raw) :]


def load(image: bytes) -> Any:
    """Loads past our own checks, as another program would."""
    return hip().one("hipModuleLoadData", image)


@pytest.mark.parametrize(
    ("image", "error", "words"),
    [
        (object_bytes("vector_add_gfx942"), "hipErrorInvalidImage", "not linked (ELF type 1)"),
        (link(object_bytes("vector_add_gfx90a")), "hipErrorNoBinaryForGpu", "image is for processor 0x3f"),
        (patched(18, struct.pack("<H", 62)), "hipErrorInvalidImage", "no ELF file for an AMD GPU"),
        (b"this is text, and long enough to have a header" * 4, "hipErrorInvalidImage", "no ELF file"),
        (patched(8, b"\1"), "hipErrorInvalidImage", "ABI version 1"),
        (patched(8, b"\5"), "hipErrorInvalidImage", "ABI version 5"),
        (patched(48, struct.pack("<I", 0xB4C)), "hipErrorNoBinaryForGpu", "xnack of the image"),
        (patched(48, struct.pack("<I", 0xA4C)), "hipErrorNoBinaryForGpu", "sramecc of the image"),
        (patched(54, struct.pack("<H", 32)), "hipErrorInvalidImage", "program headers of 32 bytes"),
        (IMAGE.replace(b"\xb5.kernarg_segment_size\x1c", b"\xb5.kernarg_segment_size\x20"), "hipErrorInvalidImage",
         "the descriptor of vector_add does not fit"),
        (IMAGE.replace(b"vector_add.kd\x00", b"vector_xdd.kd\x00"), "hipErrorInvalidImage", "no descriptor"),
        (IMAGE.replace(b"\x83\xaeamdhsa", b"\xc1\xaeamdhsa"), "hipErrorInvalidImage", "metadata is damaged"),
    ],
)  # fmt: skip
def test_images_that_a_loader_refuses(double: Double, image: bytes, error: str, words: str) -> None:
    with pytest.raises(HipError, match=error):
        load(image)
    assert words in double.message


def test_a_generic_image_and_any_mode_load(double: Double, monkeypatch: pytest.MonkeyPatch) -> None:
    for arch in ("gfx942:sramecc+:xnack-", "gfx942:sramecc-:xnack+", "gfx950:sramecc+:xnack-"):
        restart(double, monkeypatch, arch)
        hip().call("hipModuleUnload", load(link(object_bytes("vector_add_generic"))))


def test_hip_must_be_initialised_first(double: Double) -> None:
    opened = hip()
    double.configure("gfx942")
    with pytest.raises(HipError, match=r"hipErrorNotInitialized"):
        opened.call("hipModuleLoadData", IMAGE)


@pytest.mark.parametrize(
    ("grid", "block", "lds", "error"),
    [
        ((0, 1, 1), (64, 1, 1), 0, "hipErrorInvalidConfiguration"),
        ((1, 1, 1), (64, 0, 1), 0, "hipErrorInvalidConfiguration"),
        ((1, 1, 1), (1024, 2, 1), 0, "hipErrorInvalidConfiguration"),
        ((1, 1, 1), (512, 1, 1), 0, "hipErrorLaunchFailure"),
        ((1, 1, 1), (64, 1, 1), 65537, "hipErrorInvalidValue"),
    ],
)
def test_launches_that_a_runtime_refuses(
    double: Double, grid: tuple[int, int, int], block: tuple[int, int, int], lds: int, error: str
) -> None:
    module = load(IMAGE)
    function = hip().one("hipModuleGetFunction", module, b"vector_add")
    with pytest.raises(HipError, match=error):
        hip().call("hipModuleLaunchKernel", function, *grid, *block, lds, None, None, extra(28))
    hip().call("hipModuleUnload", module)


def extra(size: int) -> Any:
    """A list of launch parameters for a segment of zeros; kept alive by its attributes."""
    data, count = ctypes.create_string_buffer(max(size, 1)), ctypes.c_size_t(size)
    listed = (ctypes.c_void_p * 5)(1, ctypes.addressof(data), 2, ctypes.addressof(count), 3)
    listed.kept = (data, count)  # type: ignore[attr-defined]
    return listed


def test_argument_bytes_are_counted(double: Double) -> None:
    module = load(IMAGE)
    function = hip().one("hipModuleGetFunction", module, b"vector_add")
    shape = (1, 1, 1, 64, 1, 1, 0, None)
    hip().call("hipModuleLaunchKernel", function, *shape, None, extra(28))
    for given, words in ((extra(24), "24 argument bytes given, vector_add wants 28"), (None, "wants arguments")):
        with pytest.raises(HipError, match=r"hipErrorInvalidValue"):
            hip().call("hipModuleLaunchKernel", function, *shape, None, given)
        assert words in double.message
    broken = (ctypes.c_void_p * 5)(9, 8, 2, 8, 3)
    with pytest.raises(HipError, match=r"hipErrorInvalidValue"):
        hip().call("hipModuleLaunchKernel", function, *shape, None, broken)
    assert "malformed extra" in double.message
    hip().call("hipModuleUnload", module)


def test_copies_are_bounds_checked(double: Double) -> None:
    kinds = hip().binding.hipMemcpyKind
    host = np.zeros(16, np.uint8)
    with DeviceArray(8, np.uint8) as array:
        for to, source, size, kind, words in [
            (array.address, host.ctypes.data, 9, kinds.hipMemcpyHostToDevice, "9 bytes wanted, 8 left"),
            (array.address + 4, host.ctypes.data, 5, kinds.hipMemcpyHostToDevice, "5 bytes wanted, 4 left"),
            (host.ctypes.data, array.address, 9, kinds.hipMemcpyDeviceToHost, "source of a copy: 9 bytes"),
            (host.ctypes.data, host.ctypes.data, 4, kinds.hipMemcpyHostToDevice, "is not in device memory"),
            (array.address, array.address, 4, kinds.hipMemcpyHostToDevice, "host source is device memory"),
        ]:
            with pytest.raises(HipError, match=r"hipErrorInvalidValue"):
                hip().call("hipMemcpy", to, source, size, kind)
            assert words in double.message


def test_handles_are_checked(double: Double) -> None:
    with pytest.raises(HipError, match=r"hipErrorInvalidValue"):
        hip().call("hipFree", 4096)
    with pytest.raises(HipError, match=r"hipErrorInvalidHandle"):
        hip().call("hipModuleUnload", 4096)
    with Event() as a, Event() as b, pytest.raises(HipError, match=r"hipErrorInvalidHandle"):
        b.elapsed_ms(a)
    with Stream() as stream, Event() as event:
        event.record(stream)
        stream.wait(event)
        with pytest.raises(HipError, match=r"hipErrorInvalidHandle"):
            hip().call("hipStreamSynchronize", event.handle)


# Broken images, under the sanitizers.


def mutants(count: int, seed: int) -> list[bytes]:
    """Images with changed bytes, header fields and lengths."""
    rng = random.Random(seed)
    sources = [lld_bytes(n) for n in NAMES if n != "absolute"] + [IMAGE]
    edges = [0, 1, 7, 0xFF, 0xFFFF, 1 << 31, (1 << 32) - 1, 1 << 40, 1 << 63, (1 << 64) - 1]
    found = []
    for _ in range(count):
        image = bytearray(rng.choice(sources))
        elf = read_elf(bytes(image))
        places = [0, 64 + 56 * rng.randrange(len(elf.segments))]
        places += [s.offset + rng.randrange(s.filesz) for s in elf.segments if s.filesz and s.type in (2, 4)]
        places += [s.offset + rng.randrange(s.size) for s in elf.sections if s.name in (".dynsym", ".hash", ".rodata")]
        for _ in range(rng.randint(1, 4)):
            at = min(rng.choice(places) + rng.randrange(64), len(image) - 8)
            width = rng.choice([1, 1, 2, 4, 8])
            value = rng.choice([*edges, rng.randrange(1 << 64)])
            image[at : at + width] = (value & (1 << 8 * width) - 1).to_bytes(width, "little")
        if rng.random() < 0.2:
            del image[rng.randrange(len(image)) :]
        found.append(bytes(image))
    return found


def test_broken_images_are_refused_without_a_stray_access(tmp_path: Path, full: bool) -> None:
    program = tmp_path / "driver"
    sanitizers = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    sources = [*map(str, sorted(SOURCES.glob("*.c"))), str(SOURCES / "fuzz" / "driver.c")]
    command = [compiler(), "-std=c11", "-O1", "-g", *sanitizers, "-o", str(program), *sources, "-lpthread"]
    subprocess.run(command, check=True, capture_output=True)
    images = [IMAGE, *mutants(50_000 if full else 3000, seed=11)]
    (tmp_path / "images").write_bytes(b"".join(struct.pack("<I", len(i)) + i for i in images))
    done = subprocess.run([str(program), str(tmp_path / "images")], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    loaded, refused = map(int, done.stdout.split())
    assert loaded + refused == len(images) and loaded >= 1 and refused > len(images) // 3
