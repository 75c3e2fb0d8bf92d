import torch
from given import produce, work


def prepare(chunks, n):
    return torch.cuda.Stream(), torch.empty(chunks, pin_memory=True)


def run(state, x, out, report):
    side, landed = state
    current = torch.cuda.current_stream()
    for chunk, row in zip(x, out):
        made = produce(chunk)
        # what side is given from now on waits for what current was given until now
        side.wait_stream(current)
        with torch.cuda.stream(side):
            work(made, row)
        # the allocator learns that side uses this memory, too
        made.record_stream(side)
        del made
    current.wait_stream(side)
    landed.copy_(out.sum(dim=1), non_blocking=True)
    # the only time that the CPU waits
    current.synchronize()
    report.copy_(landed)
