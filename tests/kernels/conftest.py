"""Launches of these tests go to the HIP double; see tests/hip_double/fixtures.py."""

from __future__ import annotations

from tests.hip_double.fixtures import double

__all__ = ["double"]
