import torch


def prepare(steps, rows, features, outputs):
    # not timed; what it returns is the `state` of each call of run
    return None


def run(state, x, w, y, best):
    for step in range(len(x)):
        batch = x[step].cuda()
        for row in range(len(batch)):
            y[step, row] = torch.relu(batch[row] @ w)
        largest = y[step].max().item()
        best[step] = largest
        if largest > 0:
            y[step] /= largest
