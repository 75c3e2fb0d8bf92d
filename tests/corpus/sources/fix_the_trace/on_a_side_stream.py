# The copy goes by a side stream, which the current one waits for by an event.
import torch


def prepare(steps, rows, features, outputs):
    return torch.cuda.Stream(), torch.empty(steps, rows, features, device="cuda")


def run(state, x, w, y, best):
    side, here = state
    current = torch.cuda.current_stream()
    # the call before may still read what is overwritten
    side.wait_stream(current)
    with torch.cuda.stream(side):
        here.copy_(x, non_blocking=True)
    current.wait_event(side.record_event())
    torch.matmul(here, w, out=y)
    torch.clamp_(y, min=0.0)
    largest = torch.amax(y, (1, 2), keepdim=True)
    torch.div(y, torch.where(largest > 0, largest, 1.0), out=y)
    best.copy_(largest.flatten())
