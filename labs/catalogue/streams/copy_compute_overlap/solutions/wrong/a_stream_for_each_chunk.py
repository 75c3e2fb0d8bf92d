# no slot is used twice too early, for each chunk has memory of its own stream
import torch
from given import work


def prepare(chunks, rows, width):
    return rows, [torch.cuda.Stream() for _ in range(chunks)]


def run(state, source, weights, out):
    rows, streams = state
    for chunk, stream in enumerate(streams):
        piece = slice(chunk * rows, (chunk + 1) * rows)
        with torch.cuda.stream(stream):
            arrived = source[piece].to("cuda", non_blocking=True)
            computed = torch.empty_like(arrived)
            work(arrived, weights, computed)
            out[piece].copy_(computed, non_blocking=True)
