# copies and replays keep to one side stream, which waits for the current one and is
# waited for at the end
import torch
from given import make_weights, step


def prepare(samples, rows, width, layers):
    weights = make_weights(layers, width)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    graphs = {}
    with torch.cuda.stream(side):
        for number in {min(rows, samples), samples % rows} - {0}:
            batch = torch.zeros(number, width, device="cuda")
            result = torch.empty_like(batch)
            step(batch, weights, result)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, stream=side):
                step(batch, weights, result)
            graphs[number] = graph, batch, result
    return rows, weights, side, graphs


def run(state, x, begin, out):
    x = x[begin : begin + out.shape[0]]
    rows, _, side, graphs = state
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for piece, target in zip(x.split(rows), out.split(rows)):
            graph, batch, result = graphs[piece.shape[0]]
            batch.copy_(piece)
            graph.replay()
            target.copy_(result)
    torch.cuda.current_stream().wait_stream(side)
