import torch
from given import SLOTS, work


def prepare(chunks, rows, width):
    def buffers():
        return [torch.empty(rows, width, device="cuda") for _ in range(SLOTS)]

    def events():
        return [torch.cuda.Event() for _ in range(SLOTS)]

    return {
        "chunks": chunks,
        "rows": rows,
        "streams": [torch.cuda.Stream() for _ in range(3)],
        "inputs": buffers(),
        "outputs": buffers(),
        "arrived": events(),
        "computed": events(),
        "left": events(),
    }


def run(state, source, weights, out):
    up, middle, down = state["streams"]
    inputs, outputs = state["inputs"], state["outputs"]
    arrived, computed, left = state["arrived"], state["computed"], state["left"]
    rows = state["rows"]
    for chunk in range(state["chunks"]):
        slot = chunk % SLOTS
        piece = slice(chunk * rows, (chunk + 1) * rows)
        with torch.cuda.stream(up):
            # what lay here three chunks ago has been read
            up.wait_event(computed[slot])
            inputs[slot].copy_(source[piece], non_blocking=True)
            arrived[slot].record(up)
        with torch.cuda.stream(middle):
            middle.wait_event(arrived[slot])
            # and what was computed here three chunks ago has left
            middle.wait_event(left[slot])
            work(inputs[slot], weights, outputs[slot])
            computed[slot].record(middle)
        with torch.cuda.stream(down):
            down.wait_event(computed[slot])
            out[piece].copy_(outputs[slot], non_blocking=True)
            left[slot].record(down)
