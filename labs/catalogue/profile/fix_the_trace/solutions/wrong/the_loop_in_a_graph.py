import torch


def prepare(steps, rows, features, outputs):
    batches = torch.empty(steps, rows, features, device="cuda")
    return {"batches": batches, "graph": None, "largest": None}


def step_by_step(batches, w, y):
    for batch, made in zip(batches, y):
        for row, of_row in zip(batch, made):
            of_row.copy_(torch.relu(row @ w))
    largest = y.amax(dim=(1, 2))
    y.div_(torch.where(largest > 0, largest, 1)[:, None, None])
    return largest


def run(state, x, w, y, best):
    state["batches"].copy_(x, non_blocking=True)
    if state["graph"] is None:
        step_by_step(state["batches"], w, y)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            state["largest"] = step_by_step(state["batches"], w, y)
        state["graph"] = graph
    # one launch, and still as many small kernels
    state["graph"].replay()
    best.copy_(state["largest"])
