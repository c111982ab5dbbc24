#!/usr/bin/env python3
"""Sorting of tokens by expert."""

# flyprof-sim: {"flags": [{"names": ["-T"], "axis": "T", "default": "65536"}, {"names": ["-E"], "axis": "E", "default": "64"},
#     {"names": ["-k"], "axis": "k", "default": "8"}, {"names": ["--bench"], "axis": "bench", "default": "false", "switch": true}],
#   "launches": [{"kernel": "moe_sorting_oneshot_kernel_0", "source": "kernels/moe/moe_sorting_kernel.py", "template": "sorting",
#     "calls": 20, "grid": ["ceil(T*k/1024)"], "trips": 4, "ns": "2600 + T*k/40"}]}

import argparse

import torch

from kernels.moe.moe_sorting_kernel import build_moe_sorting_module


def run(tokens, experts, top_k):
    launch = build_moe_sorting_module(experts, top_k)
    ids = torch.randint(0, experts, (tokens, top_k), device="cuda")
    order = torch.empty(tokens * top_k, device="cuda", dtype=torch.int32)
    launch(ids, order, (tokens * top_k + 1023) // 1024)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("-T", type=int, default=65536)
    parser.add_argument("-E", type=int, default=64)
    parser.add_argument("-k", type=int, default=8)
    parser.add_argument("--bench", action="store_true")
    options = parser.parse_args()
    run(options.T, options.E, options.k)
