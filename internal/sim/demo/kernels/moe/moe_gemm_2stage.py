"""Two matrix products of a mixture of experts and the sum over the chosen experts."""

import flydsl.compiler as flyc
from flydsl.expr import primitive as fx


def build_moe_stages(experts, top_k, hidden, inner):
    """Build the three launchers: gate and up, down, sum over experts."""

    @flyc.kernel
    def moe_gemm1(x, w, y):
        bid = fx.block_idx(0)
        acc = fx.zeros(64, 128)
        for step in range(0, hidden, 64):
            tile = fx.load(x, bid * hidden + step)
            fx.shared_store(0, tile)
            fx.barrier()
            acc = fx.mma(fx.shared_load(0), fx.load(w, step), acc)
        fx.store(y, bid, acc)

    @flyc.kernel
    def moe_gemm2(x, w, y):
        bid = fx.block_idx(0)
        acc = fx.zeros(64, 128)
        for step in range(0, inner, 64):
            tile = fx.load(x, bid * inner + step)
            fx.shared_store(0, tile)
            fx.barrier()
            acc = fx.mma(fx.shared_load(0), fx.load(w, step), acc)
        fx.store(y, bid, acc)

    @flyc.kernel
    def moe_reduction_kernel(x, y):
        tid = fx.thread_idx(0)
        parts = fx.load(x, tid * top_k)
        fx.store(y, tid, fx.sum(parts))

    @flyc.jit
    def launch(x, w1, w2, y):
        moe_gemm1(x, w1, y).launch(grid=(experts, 1, 1), block=(256, 1, 1))
        moe_gemm2(x, w2, y).launch(grid=(experts, 1, 1), block=(256, 1, 1))
        moe_reduction_kernel(x, y).launch(grid=(experts, 1, 1), block=(256, 1, 1))

    return launch
