# A pipeline written as stages: in each round a chunk comes in, one is worked on, one leaves.
import torch
from given import SLOTS, work


def prepare(chunks, rows, width):
    def new():
        return [torch.empty((rows, width), device="cuda") for _ in range(SLOTS)]

    return new(), new(), [torch.cuda.Stream() for _ in range(3)], chunks, rows


def run(state, source, weights, out):
    ins, outs, (up, middle, down), chunks, rows = state
    came, worked, left = [None] * chunks, [None] * chunks, [None] * chunks
    for now in range(chunks + 2):
        if now < chunks:
            if now >= SLOTS:
                up.wait_event(worked[now - SLOTS])
            with torch.cuda.stream(up):
                piece = source[now * rows : (now + 1) * rows]
                ins[now % SLOTS].copy_(piece, non_blocking=True)
                came[now] = up.record_event()
        one = now - 1
        if 0 <= one < chunks:
            middle.wait_event(came[one])
            if one >= SLOTS:
                middle.wait_event(left[one - SLOTS])
            with torch.cuda.stream(middle):
                work(ins[one % SLOTS], weights, outs[one % SLOTS])
                worked[one] = middle.record_event()
        two = now - 2
        if two >= 0:
            down.wait_event(worked[two])
            with torch.cuda.stream(down):
                piece = out[two * rows : (two + 1) * rows]
                piece.copy_(outs[two % SLOTS], non_blocking=True)
                left[two] = down.record_event()
