# A thread of the host asks for the work, as it gets chunks and events from a queue.
import queue
import threading

import torch
from given import produce, work


def prepare(chunks, n):
    return torch.cuda.Stream(), torch.empty(chunks, pin_memory=True)


def ask_for_work(side, chunks):
    # which stream is current is each thread's own
    with torch.cuda.stream(side):
        while (one := chunks.get()) is not None:
            made, row, is_made = one
            side.wait_event(is_made)
            work(made, row)
            made.record_stream(side)


def run(state, x, out, report):
    side, landed = state
    chunks = queue.Queue()
    thread = threading.Thread(target=ask_for_work, args=(side, chunks))
    thread.start()
    for chunk, row in zip(x, out):
        made = produce(chunk)
        chunks.put((made, row, torch.cuda.current_stream().record_event()))
        del made
    chunks.put(None)
    thread.join()
    torch.cuda.current_stream().wait_stream(side)
    landed.copy_(out.sum(dim=1), non_blocking=True)
    torch.cuda.current_stream().synchronize()
    report.copy_(landed)
