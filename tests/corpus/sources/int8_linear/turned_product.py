# The product of the transposes, so that tokens are padded to eights and outputs to 17 rows.
import torch
from given import int8_matmul
from torch.nn.functional import pad


def prepare(tokens, features, outputs):
    return -tokens % 8, -features % 8, max(17 - outputs, 0)


def run(state, x, weight, weight_scales, threshold, codes, scales, out):
    columns, depth, rows = state
    tokens, outputs = out.shape
    outlier = torch.amax(x.abs(), 0) >= threshold
    inner = torch.where(outlier, x.new_zeros(()), x).float()
    torch.linalg.vector_norm(inner, float("inf"), dim=1, out=scales)
    # a row of zeros is divided by 1, and stays one of zeros
    divisor = scales.masked_fill(scales == 0, 1.0).unsqueeze(1)
    codes.copy_(torch.round(inner * 127 / divisor))
    left = pad(weight, (0, depth, 0, rows))
    sums = int8_matmul(left, pad(codes, (0, depth, 0, columns)).t())
    part = sums[:outputs, :tokens].float() * (weight_scales / 127)[:, None]
    part *= scales / 127
    apart = torch.where(outlier, x, 0).float()
    part.addmm_(weight.float() * (weight_scales / 127)[:, None], apart.t())
    out.copy_(part.t())
