# A function for each part, and the outliers' columns gathered by index_select.
import torch
from given import int8_matmul


def prepare(tokens, features, outputs):
    rows, depth, columns = (
        max(tokens, 17),
        features + -features % 8,
        outputs + -outputs % 8,
    )
    return rows, depth, columns


def quantized(x, outlier, codes, scales):
    kept = x.float().masked_fill(outlier[None, :], 0.0)
    torch.amax(kept.abs(), 1, out=scales)
    step = scales.where(scales > 0, torch.full_like(scales, 1.0))
    codes.copy_(torch.round(kept * 127.0 / step[:, None]).to(torch.int8))


def padded(held, rows, columns):
    larger = held.new_zeros(rows, columns)
    larger[: held.shape[0], : held.shape[1]] = held
    return larger


def run(state, x, weight, weight_scales, threshold, codes, scales, out):
    rows, depth, columns = state
    outlier = (x.abs() >= threshold).sum(0) > 0
    quantized(x, outlier, codes, scales)
    sums = int8_matmul(padded(codes, rows, depth), padded(weight, columns, depth).t())
    whole = sums[: out.shape[0], : out.shape[1]].float()
    whole = whole * torch.outer(scales, weight_scales) / 16129.0
    places = torch.nonzero(outlier)[:, 0]
    of_weight = weight.index_select(1, places).float() * weight_scales[:, None] / 127
    out.copy_(whole + x.index_select(1, places).float() @ of_weight.t())
