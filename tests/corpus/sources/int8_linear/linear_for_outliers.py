# Outliers by functional.linear with weights of zeros elsewhere, codes by addcmul-free steps.
import torch
from given import int8_matmul
from torch.nn import functional


def prepare(tokens, features, outputs):
    return features


def run(features, x, weight, weight_scales, threshold, codes, scales, out):
    tokens, outputs = out.shape
    is_outlier = (x.float().abs().amax(0) >= threshold)[None]
    kept = x.float() * ~is_outlier
    scales.copy_(torch.linalg.vector_norm(kept, float("inf"), dim=1))
    steps = 127 / scales.clamp(min=1e-30)[:, None]
    codes.copy_(torch.where(scales[:, None] > 0, kept * steps, 0.0).round())
    left = functional.pad(codes, (0, -features % 8, 0, max(17 - tokens, 0)))
    right = functional.pad(weight, (0, -features % 8, 0, -outputs % 8))
    sums = int8_matmul(left, right.t())[:tokens, :outputs]
    of_columns = (weight_scales / 127)[None]
    apart = functional.linear(x.float() * is_outlier, weight.float()) * of_columns
    out.copy_(sums * (scales / 127)[:, None] * of_columns + apart)
