# the loss is scaled by hand, and the gradients are never divided again
import torch
from given import loss_of, predict


def prepare(batch, features, hidden, outputs, steps):
    return steps


def run(steps, x, y, weight, rate, limit, w1, w2, losses, skipped):
    device = x.device.type
    weights = [w1.requires_grad_(), w2.requires_grad_()]
    optimizer = torch.optim.SGD(weights, lr=rate)
    skipped.zero_()
    for step in range(steps):
        optimizer.zero_grad()
        with torch.autocast(device, dtype=torch.float16):
            prediction = predict(x[step], w1, w2)
        loss = loss_of(prediction, y[step], weight)
        (loss * 65536.0).backward()
        torch.nn.utils.clip_grad_value_(weights, limit)
        if all(each.grad.isfinite().all() for each in weights):
            optimizer.step()
        else:
            skipped += 1
        losses[step] = loss.detach()
