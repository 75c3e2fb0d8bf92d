import torch
from given import produce, work


def prepare(chunks, n):
    # not timed; what it returns is the `state` of each call of run
    side = torch.cuda.Stream()
    landed = torch.empty(chunks, pin_memory=True)
    return side, landed


def run(state, x, out, report):
    side, landed = state
    for chunk, row in zip(x, out):
        made = produce(chunk)
        with torch.cuda.stream(side):
            work(made, row)
        del made
    landed.copy_(out.sum(dim=1), non_blocking=True)
    report.copy_(landed)
