# a graph for each shape, captured when the first batch of that shape comes
import torch
from given import make_weights, step


def prepare(samples, rows, width, layers):
    return {"weights": make_weights(layers, width), "rows": rows, "graphs": {}}


def captured(state, piece):
    batch, result = piece.clone(), torch.empty_like(piece)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        step(batch, state["weights"], result)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step(batch, state["weights"], result)
    return graph, batch, result


def run(state, x, begin, out):
    x = x[begin : begin + out.shape[0]]
    rows, graphs = state["rows"], state["graphs"]
    for piece, target in zip(x.split(rows), out.split(rows)):
        if piece.shape not in graphs:
            graphs[piece.shape] = captured(state, piece)
        graph, batch, result = graphs[piece.shape]
        batch.copy_(piece)
        graph.replay()
        target.copy_(result)
