import torch


def prepare(n):
    return None


def run(state, x, factor, out):
    # The host waits for this copy, and the GPU then waits for the host. Must it?
    on_gpu = x.cuda()
    torch.mul(on_gpu, factor, out=out)
