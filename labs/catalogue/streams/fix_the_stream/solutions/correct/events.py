# one event for each chunk; what was made is kept until the streams have met again

import torch
from given import produce, work


def prepare(chunks, n):
    side = torch.cuda.Stream()
    events = [torch.cuda.Event() for _ in range(chunks + 2)]
    return side, events, torch.empty(chunks, pin_memory=True)


def run(state, x, out, report):
    side, events, landed = state
    *produced, worked, arrived = events
    kept = []
    for i in range(x.shape[0]):
        made = produce(x[i])
        produced[i].record()
        with torch.cuda.stream(side):
            produced[i].wait()
            work(made, out[i])
        kept.append(made)
    worked.record(side)
    torch.cuda.current_stream().wait_event(worked)
    landed.copy_(out.sum(dim=1), non_blocking=True)
    arrived.record()
    # given back only now, for a stream that has waited
    kept.clear()
    arrived.synchronize()
    report.copy_(landed)
