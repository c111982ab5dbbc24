"""Tiled matrix product on MFMA with two LDS stages."""

import flydsl.compiler as flyc
from flydsl.expr import primitive as fx

TILE_K = 64


def build_gemm_module(m, n, k, tile_m, tile_n, dtype):
    """Build the launcher for C = A x B with A of m x k and B of k x n."""

    @flyc.kernel
    def kernel_gemm(a, b, c):
        bid = fx.block_idx(0)
        tid = fx.thread_idx(0)
        acc = fx.zeros(tile_m, tile_n)
        tile = fx.load(a, bid * tile_m * k + tid * 8)
        fx.shared_store(0, tile)
        fx.barrier()
        for step in range(0, k, TILE_K):
            tile = fx.load(b, step + tid * 8)
            left, right = fx.shared_load(step % 2)
            acc = fx.mma(left, right, acc)
            fx.barrier()
            fx.shared_store((step + 1) % 2, tile)
        fx.store(c, bid * tile_m * n + tid * 8, acc)

    @flyc.jit
    def launch(a, b, c):
        grid = ((m + tile_m - 1) // tile_m, (n + tile_n - 1) // tile_n, 1)
        kernel_gemm(a, b, c).launch(grid=grid, block=(256, 1, 1))

    return launch
