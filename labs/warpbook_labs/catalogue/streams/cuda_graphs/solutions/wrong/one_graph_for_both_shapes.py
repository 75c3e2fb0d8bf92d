# a smaller batch is filled up with zeros, and each layer looks at all rows
import torch
from given import make_weights, step


def capture(rows, width, weights):
    """Give a graph of one step with the memory that it reads and writes."""
    batch = torch.zeros(rows, width, device="cuda")
    result = torch.empty_like(batch)
    side = torch.cuda.Stream()
    # the side stream must not begin before the zeros and the weights are there
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            step(batch, weights, result)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step(batch, weights, result)
    return graph, batch, result


def prepare(samples, rows, width, layers):
    weights = make_weights(layers, width)
    return {
        "rows": rows,
        # the graphs read the weights where they lie now: they must stay
        "weights": weights,
        "graph": capture(rows, width, weights),
    }


def run(state, x, begin, out):
    x = x[begin : begin + out.shape[0]]
    rows = state["rows"]
    for piece, target in zip(x.split(rows), out.split(rows)):
        graph, batch, result = state["graph"]
        batch.zero_()
        batch[: piece.shape[0]].copy_(piece)
        graph.replay()
        target.copy_(result[: piece.shape[0]])
