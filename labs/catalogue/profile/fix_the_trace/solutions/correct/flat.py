import torch


def prepare(steps, rows, features, outputs):
    return steps * rows, features, outputs


def run(state, x, w, y, best):
    count, features, outputs = state
    batches = x.to("cuda", non_blocking=True).view(count, features)
    made = torch.relu(torch.mm(batches, w)).view(y.shape)
    largest = made.view(len(x), -1).max(dim=1).values
    factor = 1 / torch.where(largest > 0, largest, 1)
    torch.mul(made, factor[:, None, None], out=y)
    best.copy_(largest)
