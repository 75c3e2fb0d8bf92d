import torch
from given import fp8_matmul


def prepare(tokens, features, outputs, steps):
    return None


def run(state, x, weight, past, weight_scale, largest, out):
    # one pass, and nobody waits for it: the next step will want it
    largest.copy_(torch.linalg.vector_norm(x, float("inf")))
    scale = past.amax(0, keepdim=True) / 448
    # scale has a side, so that the quotient is one in FP32 though x is in FP16
    exact = (x / scale).clamp_(-448, 448)
    # whatever its sides are
    codes = exact.to(torch.float8_e4m3fn)
    w = weight
    result = fp8_matmul(
        codes,
        w.view(torch.float8_e4m3fn).t(),
        scale,
        torch.full_like(scale, weight_scale),
    )
    out.copy_(result)
