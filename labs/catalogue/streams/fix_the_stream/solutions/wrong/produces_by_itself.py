# right, and one stream: a `produce` of its own takes no time, and has as many launches

import torch
from given import work


def produce(x):
    made = torch.empty_like(x)
    torch.mul(x, 2, out=made)
    made.add_(1)
    made.add_(0)
    return made


def prepare(chunks, n):
    return torch.empty(chunks, pin_memory=True)


def run(state, x, out, report):
    landed = state
    for chunk, row in zip(x, out):
        work(produce(chunk), row)
    landed.copy_(out.sum(dim=1), non_blocking=True)
    torch.cuda.current_stream().synchronize()
    report.copy_(landed)
