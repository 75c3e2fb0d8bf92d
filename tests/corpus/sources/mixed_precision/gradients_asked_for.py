# torch.autograd.grad in place of backward, with a scale that is kept by hand.
import torch
from given import loss_of, predict


def prepare(batch, features, hidden, outputs, steps):
    return 2.0**16


def run(first_scale, x, y, weight, rate, limit, w1, w2, losses, skipped):
    scale, missed = first_scale, 0
    for step, (batch, target) in enumerate(zip(x, y)):
        both = [each.detach().requires_grad_() for each in (w1, w2)]
        with torch.autocast(x.device.type, torch.float16):
            loss = loss_of(predict(batch, *both), target, weight)
        losses[step] = loss.detach()
        slopes = torch.autograd.grad(loss * scale, both)
        if not all(torch.isfinite(each).all() for each in slopes):
            scale, missed = scale / 2, missed + 1
            continue
        for held, slope in zip((w1, w2), slopes):
            held.sub_(slope.div_(scale).clamp_(-limit, limit), alpha=rate)
    skipped.fill_(missed)
