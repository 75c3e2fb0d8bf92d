# A module whose buffers are weights and batches; its forward replays, and a property captures.
import functools

import torch
from given import make_weights, step


class Captured(torch.nn.Module):
    def __init__(self, weights, count):
        super().__init__()
        width = weights.shape[1]
        self.register_buffer("weights", weights, persistent=False)
        self.register_buffer("batch", torch.zeros(count, width, device="cuda"))
        self.register_buffer("result", torch.zeros_like(self.batch))

    @functools.cached_property
    def graph(self):
        found, side = torch.cuda.CUDAGraph(), torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            step(self.batch, self.weights, self.result)
        torch.cuda.current_stream().wait_stream(side)
        with torch.cuda.graph(found):
            step(self.batch, self.weights, self.result)
        return found

    def forward(self, rows):
        self.batch.copy_(rows)
        self.graph.replay()
        return self.result


def prepare(samples, rows, width, layers):
    weights = make_weights(layers, width)
    counts = {min(rows, samples), samples % rows} - {0}
    steps = torch.nn.ModuleDict({str(each): Captured(weights, each) for each in counts})
    # asked for now, so that no call captures
    graphs = [each.graph for each in steps.values()]
    return steps, rows, graphs


@torch.no_grad()
def run(state, x, begin, out):
    steps, rows, _ = state
    for target, piece in zip(out.split(rows), x[begin:].split(rows)):
        target.copy_(steps[str(len(target))](piece[: len(target)]))
