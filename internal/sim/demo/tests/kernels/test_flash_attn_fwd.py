#!/usr/bin/env python3
"""Attention beside a Triton baseline of the same problem."""

# flyprof-sim: {"flags": [{"names": ["--batch"], "axis": "B", "default": "1"}, {"names": ["--seq_len"], "axis": "S", "default": "2048"},
#     {"names": ["--num_heads"], "axis": "H", "default": "32"}, {"names": ["--num_kv_heads"], "axis": "Hkv", "default": "32"},
#     {"names": ["--head_dim"], "axis": "D", "default": "128"}, {"names": ["--causal", "--no-causal"], "axis": "causal", "default": "true", "switch": true},
#     {"names": ["--dtype"], "axis": "dtype", "default": "bf16"}, {"names": ["--warmup"], "axis": "warmup", "default": "2"}, {"names": ["--iters"], "axis": "iters", "default": "7"}],
#   "launches": [
#     {"kernel": "flash_attn_func_kernel_0", "source": "kernels/attention/flash_attn.py", "template": "gemm", "calls": "warmup+iters", "grid": ["ceil(S/128)", "H", "B"], "trips": "S/128", "ns": "5000 + 4*B*H*S*S*D/900000"},
#     {"kernel": "attn_fwd", "template": "gemm", "calls": "warmup+iters", "grid": ["ceil(S/128)", "H", "B"], "trips": "S/128", "ns": "4600 + 4*B*H*S*S*D/1000000", "baseline": true}]}

import argparse

import torch

from kernels.attention.flash_attn import build_flash_attn_func_module


def run(options):
    launch = build_flash_attn_func_module(options.num_heads, options.head_dim, options.causal, options.dtype)
    q = torch.randn(options.batch, options.seq_len, options.num_heads, options.head_dim, device="cuda")
    out = torch.empty_like(q)
    for _ in range(options.warmup + options.iters):
        launch(q, q, q, out, (options.seq_len + 127) // 128, options.batch)
    torch.nn.functional.scaled_dot_product_attention(q, q, q, is_causal=options.causal)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--seq_len", type=int, default=2048)
    parser.add_argument("--num_heads", type=int, default=32)
    parser.add_argument("--num_kv_heads", type=int, default=32)
    parser.add_argument("--head_dim", type=int, default=128)
    parser.add_argument("--causal", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--dtype", type=str, default="bf16")
    parser.add_argument("--warmup", type=int, default=2)
    parser.add_argument("--iters", type=int, default=7)
    run(parser.parse_args())
