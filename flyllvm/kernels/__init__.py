"""Kernels that come with flyllvm."""
