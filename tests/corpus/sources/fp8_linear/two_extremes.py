# The largest size from the largest and the smallest number, and one tensor of both scales.
import torch
from given import fp8_matmul
from torch.nn.functional import pad

FP8 = torch.float8_e4m3fn


def prepare(tokens, features, outputs, steps):
    return -features % 16, -outputs % 16


def run(state, x, weight, past, weight_scale, largest, out):
    depth, columns = state
    low, high = torch.aminmax(x)
    largest[0] = torch.maximum(high, -low)
    scale = torch.amax(past, dim=0).div(448.0)
    codes = x.to(torch.float32).div_(scale).clamp_(-448.0, 448.0).to(FP8)
    left = pad(codes.view(torch.uint8), (0, depth)).view(FP8)
    right = pad(weight, (0, depth, 0, columns)).view(FP8)
    result = fp8_matmul(left, right.t(), scale, torch.ones_like(scale) * weight_scale)
    out.copy_(result.narrow(1, 0, out.shape[1]))
