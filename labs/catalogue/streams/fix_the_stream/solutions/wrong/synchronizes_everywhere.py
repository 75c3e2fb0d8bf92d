# right, but the CPU waits for everything, so that nothing overlaps

import torch
from given import produce, work


def prepare(chunks, n):
    return torch.cuda.Stream(), torch.empty(chunks, pin_memory=True)


def run(state, x, out, report):
    side, landed = state
    for chunk, row in zip(x, out):
        made = produce(chunk)
        torch.cuda.synchronize()
        with torch.cuda.stream(side):
            work(made, row)
        torch.cuda.synchronize()
        del made
    torch.cuda.synchronize()
    landed.copy_(out.sum(dim=1), non_blocking=True)
    torch.cuda.synchronize()
    report.copy_(landed)
