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
    largest.copy_(x.abs().amax())
    most = past.amax(0, keepdim=True)
    scale = most / 448
    # FP16 has it, as it was one of x; and half of the bytes are passed over
    kept = torch.clamp(x, -most.half(), most.half())
    exact = kept / scale
    codes = padded(exact.to(torch.float8_e4m3fn).view(torch.uint8), 0, depth)
    w = padded(weight, columns, depth)
    result = fp8_matmul(
        codes.view(torch.float8_e4m3fn),
        w.view(torch.float8_e4m3fn).t(),
        scale,
        torch.full_like(scale, weight_scale),
    )
    out.copy_(result[:, :outputs])
