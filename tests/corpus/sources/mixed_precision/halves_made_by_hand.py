# No autocast: halves are made by hand, and the scaler is asked whether it found infinities.
import torch
from given import loss_of, predict


def prepare(batch, features, hidden, outputs, steps):
    return None


def run(_, x, y, weight, rate, limit, w1, w2, losses, skipped):
    parameters = [torch.nn.Parameter(w1), torch.nn.Parameter(w2)]
    optimizer = torch.optim.SGD(parameters, lr=rate)
    scaler = torch.amp.GradScaler(
        x.device.type, init_scale=65536.0, growth_interval=10**6
    )
    count = 0
    for step in range(x.shape[0]):
        optimizer.zero_grad(set_to_none=True)
        small = [each.half() for each in parameters]
        loss = loss_of(predict(x[step].half(), *small), y[step], weight)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        for each in parameters:
            each.grad.clamp_(-limit, limit)
        before = scaler.get_scale()
        scaler.step(optimizer)
        scaler.update()
        count += scaler.get_scale() != before
        with torch.no_grad():
            losses[step] = loss
    skipped[0] = count
