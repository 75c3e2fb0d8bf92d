# Weights are a list that foreach works on, and the check for infinities is the scaler's own.
import torch
from given import loss_of, predict


def prepare(batch, features, hidden, outputs, steps):
    return None


def run(state, x, y, weight, rate, limit, w1, w2, losses, skipped):
    masters = [w1, w2]
    scale = torch.full((1,), 65536.0, device=x.device)
    skipped.zero_()
    for step in range(len(x)):
        copies = [each.clone().requires_grad_() for each in masters]
        with torch.autocast(x.device.type, torch.float16):
            prediction = predict(x[step], *copies)
            with torch.autocast(x.device.type, enabled=False):
                loss = loss_of(prediction, y[step], weight)
        losses[step].copy_(loss.detach())
        slopes = list(torch.autograd.grad(loss * scale.squeeze(), copies))
        found = torch.zeros_like(scale)
        torch._amp_foreach_non_finite_check_and_unscale_(
            slopes, found, scale.reciprocal()
        )
        torch._foreach_clamp_max_(slopes, limit)
        torch._foreach_clamp_min_(slopes, -limit)
        # without a branch: what must not be added is not there
        for each in slopes:
            each.masked_fill_(found.bool(), 0.0)
        torch._foreach_add_(masters, slopes, alpha=-rate)
        scale = torch.where(found > 0, scale / 2, scale)
        skipped += found.to(skipped.dtype)
