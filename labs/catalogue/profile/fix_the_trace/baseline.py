import torch


def prepare(steps, rows, features, outputs):
    return None


def run(state, x, w, y, best):
    for step in range(len(x)):
        batch = x[step].cuda()
        y[step] = torch.relu(batch @ w)
        largest = y[step].max().item()
        best[step] = largest
        if largest > 0:
            y[step] /= largest
