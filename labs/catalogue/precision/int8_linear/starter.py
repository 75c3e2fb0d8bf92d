import torch
from given import int8_matmul


def prepare(tokens, features, outputs):
    return None


def run(state, x, weight, weight_scales, threshold, codes, scales, out):
    # One scale for all rows. What does one large number do to the others?
    largest = x.abs().max().float()
    scales.fill_(largest)
    codes.copy_((x.float() * 127 / largest).round())
    sums = int8_matmul(codes, weight.t())
    torch.mul(sums, largest * weight_scales / 127**2, out=out)
