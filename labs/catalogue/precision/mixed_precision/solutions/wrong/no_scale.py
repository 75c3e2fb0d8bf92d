# gradients that float16 has no number for become zero: nothing is learned
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
        loss.backward()
        torch.nn.utils.clip_grad_value_(weights, limit)
        optimizer.step()
        losses[step] = loss.detach()
