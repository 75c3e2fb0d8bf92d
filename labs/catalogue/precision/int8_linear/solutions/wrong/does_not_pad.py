import torch
from given import int8_matmul


def prepare(tokens, features, outputs):
    return None


def run(state, x, weight, weight_scales, threshold, codes, scales, out):
    is_outlier = (x.abs() >= threshold).any(0)
    kept = x.masked_fill(is_outlier, 0)
    scales.copy_(kept.abs().amax(1))
    # a row of zeros has no scale, and its codes are zeros
    factor = torch.where(scales > 0, 127 / scales, 0)
    codes.copy_((kept * factor[:, None]).round_())
    sums = int8_matmul(codes, weight.t())
    result = sums * scales[:, None]
    result *= weight_scales / 127**2
    places = is_outlier.nonzero().flatten()
    if len(places):
        apart = weight[:, places] * (weight_scales[:, None] / 127)
        result += x[:, places] @ apart.half().t()
    out.copy_(result)
