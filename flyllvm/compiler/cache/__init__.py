"""Compiled kernels on disk, shared by all processes of a user.

``FLYLLVM_CACHE_DIR`` names the directory, ``FLYLLVM_CACHE=0`` switches it off, ``FLYLLVM_CACHE_SIZE`` bounds it.
"""

from __future__ import annotations

from .levels import Recipe, find_image, find_source, image_key, keep_image, keep_source
from .store import Cache, default_directory, open_cache, parse_size, size_limit

__all__ = [
    "Cache",
    "Recipe",
    "default_directory",
    "find_image",
    "find_source",
    "image_key",
    "keep_image",
    "keep_source",
    "open_cache",
    "parse_size",
    "size_limit",
]
