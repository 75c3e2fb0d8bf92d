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
    shapes = {min(rows, samples), samples % rows} - {0}
    return {
        "rows": rows,
        # the graphs read the weights where they lie now: they must stay
        "weights": weights,
        "graphs": {shape: capture(shape, width, weights) for shape in shapes},
    }


def run(state, x, begin, out):
    x = x[begin : begin + out.shape[0]]
    rows = state["rows"]
    for piece, target in zip(x.split(rows), out.split(rows)):
        graph, batch, result = state["graphs"][piece.shape[0]]
        batch.copy_(piece)
        graph.replay()
        target.copy_(result)
