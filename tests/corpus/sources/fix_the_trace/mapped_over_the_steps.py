# A function of one batch is mapped over all steps by torch.vmap.
import torch


def of_one_step(batch, w):
    positive = torch.relu(batch @ w)
    largest = positive.amax()
    return positive / torch.where(largest > 0, largest, 1), largest


def prepare(steps, rows, features, outputs):
    return torch.vmap(of_one_step, in_dims=(0, None))


def run(mapped, x, w, y, best):
    every, largest = mapped(x.to("cuda", non_blocking=True), w)
    y.copy_(every)
    best.copy_(largest)
