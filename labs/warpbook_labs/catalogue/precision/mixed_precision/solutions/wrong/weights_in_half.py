# weights are kept in half precision, too, where small steps are rounded away
import torch
from given import loss_of, predict


def prepare(batch, features, hidden, outputs, steps):
    return steps


def run(steps, x, y, weight, rate, limit, w1, w2, losses, skipped):
    device = x.device.type
    small = [w1.half().float(), w2.half().float()]
    weights = [each.requires_grad_() for each in small]
    optimizer = torch.optim.SGD(weights, lr=rate)
    scaler = torch.amp.GradScaler(device)
    skipped.zero_()
    for step in range(steps):
        optimizer.zero_grad()
        with torch.autocast(device, dtype=torch.float16):
            prediction = predict(x[step], *weights)
        loss = loss_of(prediction, y[step], weight)
        scaler.scale(loss).backward()
        # the limit is meant for true gradients
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_value_(weights, limit)
        before = scaler.get_scale()
        scaler.step(optimizer)
        scaler.update()
        with torch.no_grad():
            for each in weights:
                each.copy_(each.half())
        skipped += scaler.get_scale() < before
        losses[step] = loss.detach()
    for target, each in zip((w1, w2), weights):
        target.copy_(each.detach())
