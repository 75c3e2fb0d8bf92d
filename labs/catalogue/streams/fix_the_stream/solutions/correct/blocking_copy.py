# a copy that the CPU waits for is a wait, too; here the side stream produces

import torch
from given import produce, work


def prepare(chunks, n):
    return torch.cuda.Stream()


def run(state, x, out, report):
    side = state
    current = torch.cuda.current_stream()
    side.wait_stream(current)
    for i in range(x.shape[0]):
        with torch.cuda.stream(side):
            made = produce(x[i])
        current.wait_stream(side)
        work(made, out[i])
        made.record_stream(current)
    report.copy_(out.sum(dim=1))
