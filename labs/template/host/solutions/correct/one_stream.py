import torch


def prepare(n):
    return None


def run(state, x, factor, out):
    torch.mul(x.to("cuda", non_blocking=True), factor, out=out)
