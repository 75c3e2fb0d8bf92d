import torch
from given import loss_of

# no autocast and no GradScaler: what both of them do, written out


def prepare(batch, features, hidden, outputs, steps):
    return steps


def run(steps, x, y, weight, rate, limit, w1, w2, losses, skipped):
    weights = [w1.detach(), w2.detach()]
    scale = 65536.0
    skipped.zero_()
    for step in range(steps):
        first, second = (each.half().requires_grad_() for each in weights)
        hidden = torch.tanh(torch.nn.functional.linear(x[step].half(), first))
        loss = loss_of(torch.nn.functional.linear(hidden, second), y[step], weight)
        slopes = torch.autograd.grad(loss * scale, (first, second))
        if all(bool(each.isfinite().all()) for each in slopes):
            for each, slope in zip(weights, slopes):
                true = slope.float() / scale
                each.sub_(rate * true.clamp(-limit, limit))
        else:
            scale /= 2
            skipped += 1
        losses[step] = loss.detach()
