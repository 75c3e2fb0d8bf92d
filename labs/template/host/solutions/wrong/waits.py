import torch


def prepare(n):
    return torch.empty(n, device="cuda")


def run(state, x, factor, out):
    state.copy_(x, non_blocking=True)
    torch.cuda.synchronize()
    torch.mul(state, factor, out=out)
