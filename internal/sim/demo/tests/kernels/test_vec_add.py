#!/usr/bin/env python3
"""Vector addition; the kernel is defined in the test."""

# flyprof-sim: {"flags": [{"names": ["--vec-width"], "axis": "V", "default": "4"}, {"names": ["--benchmark"], "axis": "bench", "default": "false", "switch": true}],
#   "launches": [{"kernel": "vecAddKernel_0", "function": "vecAddKernel", "source": "tests/kernels/test_vec_add.py", "template": "elementwise", "calls": 24, "grid": ["ceil(40960000/(1024*V))"]}]}

import argparse

import torch

import flydsl.compiler as flyc
from flydsl.expr import primitive as fx

SIZE = 40960000


@flyc.kernel
def vecAddKernel(a, b, c, width):
    tid = fx.block_idx(0) * 256 + fx.thread_idx(0)
    left = fx.load(a, tid * width)
    right = fx.load(b, tid * width)
    fx.store(c, tid * width, left + right)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--vec-width", type=int, default=4)
    parser.add_argument("--benchmark", action="store_true")
    options = parser.parse_args()
    x = torch.randn(SIZE, device="cuda")
    vecAddKernel(x, x, torch.empty_like(x), options.vec_width)
