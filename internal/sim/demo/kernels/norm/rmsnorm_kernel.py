"""Root mean square norm of rows."""

import flydsl.compiler as flyc
from flydsl.expr import primitive as fx

BLOCK = 256


def build_rmsnorm_module(n, dtype, epsilon=1e-6):
    """Build the launcher for rows of n elements."""

    @flyc.kernel
    def rmsnorm_kernel(x, gamma, y):
        bid = fx.block_idx(0)
        tid = fx.thread_idx(0)
        row = fx.load(x, bid * n + tid * 8, width=n // BLOCK)
        square_sum = fx.block_sum(row * row)
        rsqrt = fx.rsqrt(square_sum / n + epsilon)
        weight = fx.load(gamma, tid * 8, width=n // BLOCK)
        fx.store(y, bid * n + tid * 8, row * rsqrt * weight)

    @flyc.jit
    def launch(x, gamma, y, m):
        rmsnorm_kernel(x, gamma, y).launch(grid=(m, 1, 1), block=(BLOCK, 1, 1))

    return launch
