"""Convolution; pytest only, as a script it does nothing."""

# flyprof-sim: {"launches": [
#     {"kernel": "conv3d_implicit_kernel_0", "source": "kernels/conv/conv3d_implicit.py", "template": "gemm", "calls": 6, "grid": [1024], "trips": 27, "tests": ["test_conv3d_forward"]},
#     {"kernel": "conv3d_implicit_kernel_0", "source": "kernels/conv/conv3d_implicit.py", "template": "gemm", "calls": 4, "grid": [512], "trips": 27, "tests": ["test_conv3d_stride"]}]}

import pytest
import torch

from kernels.conv.conv3d_implicit import build_conv3d_module


@pytest.mark.parametrize("channels", [64])
def test_conv3d_forward(channels):
    launch = build_conv3d_module(channels, 128, 3)
    x = torch.randn(1024 * 128, channels, device="cuda")
    launch(x, x, torch.empty_like(x), 1024)


def test_conv3d_stride():
    launch = build_conv3d_module(64, 128, 3)
    x = torch.randn(512 * 128, 64, device="cuda")
    launch(x, x, torch.empty_like(x), 512)
