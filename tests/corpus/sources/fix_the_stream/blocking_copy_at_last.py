# The one wait is a copy to ordinary memory, which blocks by itself.
import torch
from given import produce, work


class Side:
    def __init__(self):
        self.stream = torch.cuda.Stream()

    def do(self, function, *given):
        self.stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.stream):
            function(*given)
        given[0].record_stream(self.stream)


def prepare(chunks, n):
    return Side()


def run(side, x, out, report):
    for i, chunk in enumerate(x):
        side.do(work, produce(chunk), out[i])
    torch.cuda.current_stream().wait_stream(side.stream)
    report.copy_(out.sum(dim=-1))
