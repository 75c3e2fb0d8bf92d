# Each chunk's sum is made by a product with ones on the side stream, into one row of sums.
import torch
from given import produce, work


class Side:
    def __init__(self, chunks, n):
        self.stream = torch.cuda.Stream()
        self.ones = torch.ones(n, device="cuda")
        self.sums = torch.empty(chunks, device="cuda")
        self.landed = torch.empty(chunks, pin_memory=True)
        self.stream.wait_stream(torch.cuda.current_stream())

    def __enter__(self):
        self.entered = torch.cuda.stream(self.stream)
        self.stream.wait_stream(torch.cuda.current_stream())
        self.entered.__enter__()
        return self

    def __exit__(self, *problem):
        self.entered.__exit__(*problem)


def prepare(chunks, n):
    return Side(chunks, n)


def run(side, x, out, report):
    for number in range(x.size(0)):
        made = produce(x[number])
        with side:
            work(made, out[number])
            torch.dot(out[number], side.ones, out=side.sums[number])
        made.record_stream(side.stream)
    with side:
        side.landed.copy_(side.sums, non_blocking=True)
    # out is complete for whoever comes later on the current stream
    torch.cuda.current_stream().wait_stream(side.stream)
    side.stream.synchronize()
    report.copy_(side.landed)
