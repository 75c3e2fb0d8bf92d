import torch
from given import loss_of, predict


def prepare(batch, features, hidden, outputs, steps):
    return steps


def run(steps, x, y, weight, rate, limit, w1, w2, losses, skipped):
    # It trains, in float32. On a GPU the tensor cores for half precision have nothing
    # to do. Where do torch.autocast and torch.amp.GradScaler belong?
    weights = [w1.requires_grad_(), w2.requires_grad_()]
    optimizer = torch.optim.SGD(weights, lr=rate)
    for step in range(steps):
        optimizer.zero_grad()
        loss = loss_of(predict(x[step], w1, w2), y[step], weight)
        loss.backward()
        torch.nn.utils.clip_grad_value_(weights, limit)
        optimizer.step()
        losses[step] = loss.detach()
    skipped.zero_()
