import torch


def prepare(n):
    return torch.cuda.Stream(), torch.empty(n, device="cuda")


def run(state, x, factor, out):
    copies, on_gpu = state
    copies.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(copies):
        on_gpu.copy_(x, non_blocking=True)
    torch.cuda.current_stream().wait_stream(copies)
    torch.mul(on_gpu, factor, out=out)
