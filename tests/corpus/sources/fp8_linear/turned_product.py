# The product of the transposes: rows of w by columns of x's codes, and the result turned back.
import torch
from given import fp8_matmul
from torch.nn.functional import hardtanh, pad


def prepare(tokens, features, outputs, steps):
    return -tokens % 16, -features % 16, torch.float8_e4m3fn


def run(state, x, weight, past, weight_scale, largest, out):
    rows, depth, fp8 = state
    largest.copy_(x.abs().max())
    scale = torch.max(past).reshape(1) / 448.0
    codes = hardtanh(x.float().div(scale), -448.0, 448.0).to(fp8).view(torch.uint8)
    left = pad(weight, (0, depth)).view(fp8)
    right = pad(codes, (0, depth, 0, rows)).view(fp8)
    factor = scale.new_tensor([1.0]).mul_(weight_scale)
    result = fp8_matmul(left, right.t(), factor, scale)
    out.copy_(result[:, : out.shape[0]].t())
