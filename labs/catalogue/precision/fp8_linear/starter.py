import torch
from given import fp8_matmul


def prepare(tokens, features, outputs, steps):
    return None


def run(state, x, weight, past, weight_scale, largest, out):
    # The scale waits for a whole pass over x. What is known before it?
    largest.copy_(x.abs().max())
    scale = largest / 448
    codes = (x.float() / scale).to(torch.float8_e4m3fn)
    w = weight.view(torch.float8_e4m3fn)
    of_weight = torch.full_like(scale, weight_scale)
    out.copy_(fp8_matmul(codes, w.t(), scale, of_weight))
