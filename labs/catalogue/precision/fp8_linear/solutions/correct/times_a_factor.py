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
    least, most = x.aminmax()
    largest.copy_(torch.maximum(-least, most))
    most = past.max()
    exact = (x.float() * (448 / most)).clamp_(-448, 448)
    codes = padded(exact.to(torch.float8_e4m3fn).view(torch.uint8), 0, depth)
    w = padded(weight, columns, depth)
    result = fp8_matmul(
        codes.view(torch.float8_e4m3fn),
        w.view(torch.float8_e4m3fn).t(),
        # both scales in one
        most / 448 * weight_scale,
        torch.ones_like(most),
    )
    out.copy_(result[:, :outputs])
