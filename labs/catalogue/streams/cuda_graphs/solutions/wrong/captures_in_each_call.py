# to capture costs as much as to launch, and more
import torch
from given import make_weights, step


def prepare(samples, rows, width, layers):
    return {"rows": rows, "weights": make_weights(layers, width)}


def run(state, x, begin, out):
    x = x[begin : begin + out.shape[0]]
    rows, weights = state["rows"], state["weights"]
    for piece, target in zip(x.split(rows), out.split(rows)):
        step(piece, weights, target)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            step(piece, weights, target)
        graph.replay()
