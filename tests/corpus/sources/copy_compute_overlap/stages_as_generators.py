# Each stage is a generator, which takes the one before it and gives buffer and event on.
import collections

import torch
from given import SLOTS, work


def arriving(state, source):
    stream = state["up"]
    for piece in source.split(state["rows"]):
        held, free = state["ins"].popleft()
        with torch.cuda.stream(stream):
            if free is not None:
                stream.wait_event(free)
            held.copy_(piece, non_blocking=True)
            yield held, stream.record_event()


def computed(state, weights, inputs):
    stream = torch.cuda.current_stream()
    for held, came in inputs:
        result, free = state["outs"].popleft()
        with torch.cuda.stream(stream):
            stream.wait_event(came)
            if free is not None:
                stream.wait_event(free)
            work(held, weights, result)
            done = stream.record_event()
        state["ins"].append((held, done))
        yield result, done


def prepare(chunks, rows, width):
    def slots():
        held = torch.empty(SLOTS, rows, width, device="cuda").unbind()
        return collections.deque((each, None) for each in held)

    streams = {"up": torch.cuda.Stream(), "down": torch.cuda.Stream()}
    return {"ins": slots(), "outs": slots(), "rows": rows, **streams}


def run(state, source, weights, out):
    down = state["down"]
    targets = out.split(state["rows"])
    stages = computed(state, weights, arriving(state, source))
    for target, (result, done) in zip(targets, stages):
        with torch.cuda.stream(down):
            down.wait_event(done)
            target.copy_(result, non_blocking=True)
            state["outs"].append((result, down.record_event()))
