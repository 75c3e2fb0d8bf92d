# where the number of batches is known, one graph may have them all
import torch
from given import make_weights, step


def steps(state):
    rows = state["rows"]
    for piece, target in zip(state["x"].split(rows), state["out"].split(rows)):
        step(piece, state["weights"], target)


def prepare(samples, rows, width, layers):
    state = {
        "rows": rows,
        "weights": make_weights(layers, width),
        "x": torch.zeros(samples, width, device="cuda"),
        "out": torch.empty(samples, width, device="cuda"),
        "graph": torch.cuda.CUDAGraph(),
    }
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        steps(state)
    torch.cuda.current_stream().wait_stream(side)
    with torch.cuda.graph(state["graph"]):
        steps(state)
    return state


def run(state, x, begin, out):
    x = x[begin : begin + out.shape[0]]
    state["x"].copy_(x)
    state["graph"].replay()
    out.copy_(state["out"])
