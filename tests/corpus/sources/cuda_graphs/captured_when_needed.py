# Graphs are captured when their shape is first seen, and kept in a dictionary.
import torch
from given import make_weights, step


class Replayed:
    def __init__(self, weights):
        self.weights, self.graphs = weights, {}

    def __call__(self, piece, target):
        if piece.shape not in self.graphs:
            self.graphs[piece.shape] = self.capture(piece)
        graph, batch, result = self.graphs[piece.shape]
        batch.copy_(piece)
        graph.replay()
        target.copy_(result)

    def capture(self, piece):
        batch, result = piece.clone(), torch.empty_like(piece)
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            step(batch, self.weights, result)
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            step(batch, self.weights, result)
        return graph, batch, result


def prepare(samples, rows, width, layers):
    return rows, Replayed(make_weights(layers, width))


def run(state, x, begin, out):
    rows, replayed = state
    for at in range(0, len(out), rows):
        end = min(at + rows, len(out))
        replayed(x[begin + at : begin + end], out[at:end])
