#!/usr/bin/env python3
"""Three kernels in one test: two matrix products and a sum."""

# flyprof-sim: {"flags": [{"names": ["-t", "--tokenNum"], "axis": "T", "default": "4096"}, {"names": ["-e", "--expert"], "axis": "E", "default": "8"},
#     {"names": ["-k", "--topk"], "axis": "k", "default": "2"}, {"names": ["--hidden"], "axis": "D", "default": "2048"}],
#   "launches": [
#     {"kernel": "moe_gemm1_0", "source": "kernels/moe/moe_gemm_2stage.py", "template": "gemm", "calls": 18, "grid": ["ceil(T*k/64)", "8"], "trips": "D/64", "ns": "8000 + T*k*D/400"},
#     {"kernel": "moe_gemm2_0", "source": "kernels/moe/moe_gemm_2stage.py", "template": "gemm", "calls": 18, "grid": ["ceil(T*k/64)", "4"], "trips": "D/64", "ns": "7000 + T*k*D/600"},
#     {"kernel": "moe_reduction_kernel_0", "source": "kernels/moe/moe_gemm_2stage.py", "template": "elementwise", "calls": 18, "grid": ["ceil(T*D/2048)"], "ns": "3000 + T*D/3000"}]}

import argparse

import torch

from kernels.moe.moe_gemm_2stage import build_moe_stages


def run(tokens, experts, top_k, hidden):
    launch = build_moe_stages(experts, top_k, hidden, hidden // 2)
    x = torch.randn(tokens, hidden, device="cuda")
    launch(x, x, x, torch.empty_like(x))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("-t", "--tokenNum", type=int, default=4096)
    parser.add_argument("-e", "--expert", type=int, default=8)
    parser.add_argument("-k", "--topk", type=int, default=2)
    parser.add_argument("--hidden", type=int, default=2048)
    options = parser.parse_args()
    run(options.tokenNum, options.expert, options.topk, options.hidden)
