# right, but one stream does one thing after the other

import torch
from given import produce, work


def prepare(chunks, n):
    return torch.empty(chunks, pin_memory=True)


def run(state, x, out, report):
    landed = state
    for chunk, row in zip(x, out):
        work(produce(chunk), row)
    landed.copy_(out.sum(dim=1), non_blocking=True)
    torch.cuda.current_stream().synchronize()
    report.copy_(landed)
