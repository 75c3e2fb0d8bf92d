# A generator for each shape keeps graph and memory; batches are sent to it, results come back.
import torch
from given import make_weights, step


def replays(count, weights):
    batch = torch.full((count, weights.shape[1]), 0.0, device="cuda")
    result = torch.empty_like(batch)
    graph = torch.cuda.CUDAGraph()
    side = torch.cuda.Stream()
    side.wait_event(torch.cuda.current_stream().record_event())
    with torch.cuda.stream(side):
        step(batch, weights, result)
        step(batch, weights, result)
    side.record_event().wait()
    with torch.cuda.graph(graph, capture_error_mode="relaxed"):
        step(batch, weights, result)
    rows = yield
    while True:
        batch.copy_(rows, non_blocking=True)
        graph.replay()
        rows = yield result


def prepare(samples, rows, width, layers):
    weights = make_weights(layers, width)
    asked = {}
    for count in {min(rows, samples), samples % rows} - {0}:
        asked[count] = replays(count, weights)
        next(asked[count])
    return asked


def run(asked, x, begin, out):
    most, at = max(asked), 0
    while at < len(out):
        target = out[at : at + most]
        rows = x[begin + at :][: len(target)]
        target.copy_(asked[len(target)].send(rows))
        at += most
