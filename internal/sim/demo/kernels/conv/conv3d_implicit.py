"""3D convolution as an implicit matrix product."""

import flydsl.compiler as flyc
from flydsl.expr import primitive as fx


def build_conv3d_module(channels, filters, kernel_size):
    """Build the launcher for one convolution."""

    @flyc.kernel
    def conv3d_implicit_kernel(x, w, y):
        bid = fx.block_idx(0)
        tid = fx.thread_idx(0)
        acc = fx.zeros(128, 128)
        for tap in range(kernel_size**3):
            tile = fx.load(x, bid * 128 + tap * channels + tid * 8)
            fx.shared_store(0, tile)
            fx.barrier()
            acc = fx.mma(fx.shared_load(0), fx.load(w, tap), acc)
        fx.store(y, bid * 128 + tid * 8, acc)

    @flyc.jit
    def launch(x, w, y, groups):
        conv3d_implicit_kernel(x, w, y).launch(grid=(groups, 1, 1), block=(256, 1, 1))

    return launch
