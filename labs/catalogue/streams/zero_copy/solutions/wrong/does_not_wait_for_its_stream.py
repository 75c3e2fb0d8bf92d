# rows are scaled on one stream before another has them here
import torch
from given import scaled, seen_by_gpu


def prepare(rows, picked, width):
    return torch.cuda.Stream(), torch.empty(picked, width, device="cuda")


def run(state, table, which, out):
    side, here = state
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        torch.index_select(seen_by_gpu(table), 0, which, out=here)
    scaled(here, out)
