"""Kernels of the demo checkout."""
