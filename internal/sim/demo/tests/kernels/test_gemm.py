#!/usr/bin/env python3
"""Matrix product; the problem is chosen by flags."""

# flyprof-sim: {"flags": [{"names": ["-M", "--M"], "axis": "M", "default": "4096"}, {"names": ["-N", "--N"], "axis": "N", "default": "4096"},
#     {"names": ["-K", "--K"], "axis": "K", "default": "4096"}, {"names": ["--in_dtype"], "axis": "dtype", "default": "bf16"},
#     {"names": ["--tile_m"], "axis": "tile_m", "default": "128"}, {"names": ["--tile_n"], "axis": "tile_n", "default": "128"},
#     {"names": ["--num_iters"], "axis": "iters", "default": "25"}, {"names": ["--no_aiter_bench"], "axis": "quiet", "default": "false", "switch": true}],
#   "launches": [{"kernel": "kernel_gemm_0", "source": "kernels/gemm/tile_gemm.py", "template": "gemm", "calls": "iters",
#     "grid": ["ceil(M/tile_m)", "ceil(N/tile_n)"], "trips": "K/64", "ns": "6000 + 2*M*N*K/900000"}]}

import argparse

import torch

from kernels.gemm.tile_gemm import build_gemm_module
from tests.kernels.test_ref import torch_gemm


def run(args):
    launch = build_gemm_module(args.M, args.N, args.K, args.tile_m, args.tile_n, args.in_dtype)
    a = torch.randn(args.M, args.K, device="cuda")
    b = torch.randn(args.N, args.K, device="cuda")
    c = torch.empty(args.M, args.N, device="cuda")
    for _ in range(args.num_iters):
        launch(a, b, c)
    assert torch.allclose(c, torch_gemm(a, b), atol=1e-1)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="matrix product")
    parser.add_argument("-M", type=int, default=4096)
    parser.add_argument("-N", type=int, default=4096)
    parser.add_argument("-K", type=int, default=4096)
    parser.add_argument("--in_dtype", type=str, default="bf16", choices=["bf16", "fp16", "fp8"])
    parser.add_argument("--tile_m", type=int, default=128)
    parser.add_argument("--tile_n", type=int, default=128)
    parser.add_argument("--num_iters", type=int, default=25)
    parser.add_argument("--no_aiter_bench", action="store_true")
    run(parser.parse_args())
