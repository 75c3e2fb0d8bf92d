# Work stays on the current stream; only the copies have streams of their own.
import torch
from given import SLOTS, work


def prepare(chunks, rows, width):
    new = torch.empty
    state = {"up": torch.cuda.Stream(), "down": torch.cuda.Stream(), "rows": rows}
    state["in"] = [new(rows, width, device="cuda") for _ in range(SLOTS)]
    state["out"] = [new(rows, width, device="cuda") for _ in range(SLOTS)]
    return state


def run(state, source, weights, out):
    up, down, rows = state["up"], state["down"], state["rows"]
    current = torch.cuda.current_stream()
    # what the call before left in the buffers
    up.wait_stream(current)
    current.wait_stream(down)
    used, gone = {}, {}
    for i in range(0, source.shape[0], rows):
        slot = i // rows % SLOTS
        if slot in used:
            up.wait_event(used[slot])
            current.wait_event(gone[slot])
        with torch.cuda.stream(up):
            state["in"][slot].copy_(source[i : i + rows], non_blocking=True)
            current.wait_event(up.record_event())
        work(state["in"][slot], weights, state["out"][slot])
        used[slot] = current.record_event()
        with torch.cuda.stream(down):
            down.wait_event(used[slot])
            out[i : i + rows].copy_(state["out"][slot], non_blocking=True)
            gone[slot] = down.record_event()
