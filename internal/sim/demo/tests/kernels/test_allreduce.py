#!/usr/bin/env python3
"""All-reduce over several GPUs, one process each."""

# flyprof-sim: {"gpus": 2, "flags": [{"names": ["--world_size"], "axis": "W", "default": "2"}, {"names": ["--shapes"], "axis": "", "default": ""}],
#   "launches": [{"kernel": "allreduce_1stage_0", "source": "kernels/comm/custom_all_reduce.py", "template": "elementwise", "calls": 20, "grid": [80]}]}

import argparse

import torch.multiprocessing as mp

from kernels.comm.custom_all_reduce import build_allreduce_module


def worker(rank, world_size):
    build_allreduce_module(world_size)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--world_size", type=int, default=2)
    parser.add_argument("--shapes", type=str, default="")
    options = parser.parse_args()
    mp.spawn(worker, args=(options.world_size,), nprocs=options.world_size)
