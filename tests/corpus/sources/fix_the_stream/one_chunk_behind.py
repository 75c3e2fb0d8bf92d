# Work on a chunk is asked for once the next is on its way, and its memory kept till then.
import torch
from given import produce, work


def prepare(chunks, n):
    return torch.cuda.Stream(), torch.empty(chunks, pin_memory=True)


def run(state, x, out, report):
    side, landed = state
    current = torch.cuda.current_stream()
    waiting = None
    for i in range(len(x) + 1):
        ready = None
        if i < len(x):
            ready = (produce(x[i]), current.record_event(), out[i])
        if waiting is not None:
            made, event, row = waiting
            side.wait_event(event)
            with torch.cuda.stream(side):
                work(made, row)
            made.record_stream(side)
        waiting = ready
    current.wait_stream(side)
    landed.copy_(out.sum(dim=1), non_blocking=True)
    current.record_event().synchronize()
    report.copy_(landed)
