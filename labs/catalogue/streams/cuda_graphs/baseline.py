# Launches each kernel by itself: right, and the GPU waits for the host.
from given import make_weights, step


def prepare(samples, rows, width, layers):
    return {"weights": make_weights(layers, width), "rows": rows}


def run(state, x, begin, out):
    x = x[begin : begin + out.shape[0]]
    rows = state["rows"]
    for batch, result in zip(x.split(rows), out.split(rows)):
        step(batch, state["weights"], result)
