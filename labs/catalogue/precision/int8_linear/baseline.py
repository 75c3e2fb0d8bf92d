"""bitsandbytes where it is installed; else the same codes, multiplied in FP16."""

import torch

try:
    from bitsandbytes import functional as of_bitsandbytes
except (ImportError, OSError, RuntimeError):
    of_bitsandbytes = None


def prepare(tokens, features, outputs):
    return None


def run(state, x, weight, weight_scales, threshold, codes, scales, out):
    # timed are numbers without an outlier
    if of_bitsandbytes is not None:
        quantised, row_scales, _ = of_bitsandbytes.int8_vectorwise_quant(x, threshold)
        codes.copy_(quantised)
        scales.copy_(row_scales)
        sums = of_bitsandbytes.int8_linear_matmul(quantised, weight)
        out.copy_(of_bitsandbytes.int8_mm_dequant(sums, row_scales, weight_scales))
        return
    scales.copy_(x.abs().amax(1))
    codes.copy_((x * (127 / scales)[:, None]).round_())
    left = codes.half() * (scales / 127).half()[:, None]
    right = weight.half() * (weight_scales / 127).half()[:, None]
    torch.mm(left, right.t(), out=out)
