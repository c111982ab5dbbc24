#!/usr/bin/env python3
"""Softmax against torch. ROCDSL_SOFTMAX_SHAPES="M,N,dtype;..." chooses the shapes."""

# flyprof-sim: {"shapes": {"env": "ROCDSL_SOFTMAX_SHAPES", "axes": ["M", "N", "dtype"], "default": ["4096,8192,bf16"]},
#   "launches": [{"kernel": "softmax_kernel_0", "source": "kernels/norm/softmax_kernel.py", "template": "softmax",
#     "calls": 112, "grid": ["M"], "ns": "3000 + M*N*bytes*2/5000"}]}

import os

import torch

from kernels.norm.softmax_kernel import build_softmax_module
from tests.kernels.test_ref import torch_softmax

DEFAULT_SHAPES = "4096,8192,bf16"


def run_one(m, n, dtype):
    launch = build_softmax_module(n, dtype)
    x = torch.randn(m, n, device="cuda")
    y = torch.empty_like(x)
    launch(x, y, m)
    assert torch.allclose(y, torch_softmax(x), atol=1e-2)


def test_all():
    for text in os.environ.get("ROCDSL_SOFTMAX_SHAPES", DEFAULT_SHAPES).split(";"):
        m, n, dtype = text.split(",")
        run_one(int(m), int(n), dtype)


if __name__ == "__main__":
    test_all()
