"""The same codes, multiplied in FP16."""

import torch


def prepare(tokens, features, outputs, steps):
    return None


def run(state, x, weight, past, weight_scale, largest, out):
    largest.copy_(torch.linalg.vector_norm(x, float("inf")))
    scale = past.amax(0, keepdim=True) / 448
    codes = (x / scale).clamp_(-448, 448).to(torch.float8_e4m3fn)
    # scaled before they are multiplied: FP16 ends at 65,504
    left = codes.half().mul_(scale)
    right = weight.view(torch.float8_e4m3fn).half().mul_(weight_scale)
    torch.mm(left, right.t(), out=out)
