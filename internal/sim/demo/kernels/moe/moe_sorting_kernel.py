"""Sort tokens by expert: histogram, prefix sum, scatter."""

import flydsl.compiler as flyc
from flydsl.expr import primitive as fx


def build_moe_sorting_module(experts, top_k):
    """Build the launcher for a routing table of top_k experts a token."""

    @flyc.kernel
    def moe_sorting_oneshot_kernel(ids, order):
        bid = fx.block_idx(0)
        tid = fx.thread_idx(0)
        histogram = fx.shared_zeros(experts)
        for step in range(4):
            expert = fx.load(ids, (bid * 4 + step) * 256 + tid)
            fx.atomic_add(histogram, expert, 1)
        fx.barrier()
        place = fx.scan(histogram)
        fx.store(order, place, bid * 1024 + tid)

    @flyc.jit
    def launch(ids, order, groups):
        moe_sorting_oneshot_kernel(ids, order).launch(grid=(groups, 1, 1), block=(256, 1, 1))

    return launch
