# no memory is given back at all: two buffers take turns, each guarded by an event

import torch
from given import produce, work


def prepare(chunks, n):
    buffers = [torch.empty(n, device="cuda") for _ in range(2)]
    free = [torch.cuda.Event() for _ in range(2)]
    return torch.cuda.Stream(), buffers, free, torch.empty(chunks, pin_memory=True)


def run(state, x, out, report):
    side, buffers, free, landed = state
    current = torch.cuda.current_stream()
    for i in range(x.shape[0]):
        made = produce(x[i])
        buffer = buffers[i % 2]
        # an event that was never recorded is waited for in no time
        current.wait_event(free[i % 2])
        buffer.copy_(made)
        side.wait_stream(current)
        with torch.cuda.stream(side):
            work(buffer, out[i])
            free[i % 2].record()
    current.wait_stream(side)
    landed.copy_(out.sum(dim=1), non_blocking=True)
    current.synchronize()
    report.copy_(landed)
