# both graphs read and write the first rows of the same buffers, and share a pool: they
# are never replayed at the same time, and nothing in the pool outlives a replay
import torch
from given import make_weights, step


def prepare(samples, rows, width, layers):
    weights = make_weights(layers, width)
    batch = torch.zeros(rows, width, device="cuda")
    result = torch.empty(rows, width, device="cuda")
    pool = torch.cuda.graph_pool_handle()
    graphs = {}
    side = torch.cuda.Stream()
    for number in sorted({min(rows, samples), samples % rows} - {0}, reverse=True):
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            step(batch[:number], weights, result[:number])
        torch.cuda.current_stream().wait_stream(side)
        graphs[number] = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graphs[number], pool=pool):
            step(batch[:number], weights, result[:number])
    return rows, weights, batch, result, graphs


def run(state, x, begin, out):
    x = x[begin : begin + out.shape[0]]
    rows, _, batch, result, graphs = state
    for piece, target in zip(x.split(rows), out.split(rows)):
        number = piece.shape[0]
        batch[:number].copy_(piece)
        graphs[number].replay()
        target.copy_(result[:number])
