#!/usr/bin/env python3
"""RMSNorm over several shapes: each compiles a kernel of its own under the same name."""

# flyprof-sim: {"shapes": {"env": "ROCDSL_RMSNORM_SHAPES", "axes": ["M", "N", "dtype"],
#     "default": ["1024,8192,bf16", "4096,4096,f16", "2048,2048,f32"]},
#   "launches": [{"kernel": "rmsnorm_kernel_0", "source": "kernels/norm/rmsnorm_kernel.py", "template": "reduction",
#     "calls": 37, "grid": ["M"], "ns": "2800 + M*N*bytes*2/5500"}]}

import os

import torch

from kernels.norm.rmsnorm_kernel import build_rmsnorm_module

DEFAULT_SHAPES = "1024,8192,bf16;4096,4096,f16;2048,2048,f32"


def run_one(m, n, dtype):
    launch = build_rmsnorm_module(n, dtype)
    x = torch.randn(m, n, device="cuda")
    gamma = torch.ones(n, device="cuda")
    y = torch.empty_like(x)
    launch(x, gamma, y, m)
    want = x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6)
    assert torch.allclose(y, want, atol=1e-2)


def test_all():
    for text in os.environ.get("ROCDSL_RMSNORM_SHAPES", DEFAULT_SHAPES).split(";"):
        m, n, dtype = text.split(",")
        run_one(int(m), int(n), dtype)


if __name__ == "__main__":
    test_all()
