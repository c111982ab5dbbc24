"""Forward attention with a running softmax."""

import flydsl.compiler as flyc
from flydsl.expr import primitive as fx

ROWS = 128


def build_flash_attn_func_module(heads, head_dim, causal, dtype):
    """Build the launcher for q, k, v of batch x sequence x heads x head_dim."""

    @flyc.kernel
    def flash_attn_func_kernel(q, k, v, out):
        bid = fx.block_idx(0)
        tid = fx.thread_idx(0)
        acc = fx.zeros(ROWS, head_dim)
        queries = fx.load(q, bid * ROWS * head_dim + tid * 8)
        for block in range(0, fx.length(k), ROWS):
            keys = fx.load(k, block * head_dim + tid * 8)
            fx.shared_store(0, keys)
            fx.barrier()
            scores = fx.mma(queries, fx.shared_load(0), fx.zeros(ROWS, ROWS))
            peak = fx.max(scores)
            powers = fx.exp(scores - peak)
            acc = fx.mma(powers, fx.load(v, block * head_dim), acc)
        scale = fx.rcp(fx.sum(acc))
        fx.store(out, bid * ROWS * head_dim + tid * 8, acc * scale)

    @flyc.jit
    def launch(q, k, v, out, blocks, batch):
        flash_attn_func_kernel(q, k, v, out).launch(grid=(blocks, heads, batch), block=(256, 1, 1))

    return launch
