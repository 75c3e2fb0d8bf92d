import torch
from given import fp8_matmul
from torch.nn import functional


def prepare(tokens, features, outputs, steps):
    # so many rows and columns of zeros are wanted; none where the sides fit
    return -features % 16, -outputs % 16


def padded(held, rows, columns):
    if rows or columns:
        held = functional.pad(held, (0, columns, 0, rows))
    return held


def run(state, x, weight, past, weight_scale, largest, out):
    (depth, columns), outputs = state, out.shape[1]
    # one pass, and nobody waits for it: the next step will want it
    largest.copy_(torch.linalg.vector_norm(x, float("inf")))
    scale = past.amax(0, keepdim=True) / 448
    # scale has a side, so that the quotient is one in FP32 though x is in FP16
    exact = (x / scale).clamp_(-448, 448)
    codes = padded(exact.to(torch.float8_e4m3fn).view(torch.uint8), 0, depth)
    w = padded(weight, columns, depth)
    result = fp8_matmul(
        codes.view(torch.float8_e4m3fn),
        w.view(torch.float8_e4m3fn).t(),
        scale,
        torch.full_like(scale, weight_scale),
        out=None if columns else out,
    )
    if columns:
        out.copy_(result[:, :outputs])
