# A decorator for autocast, and torch.func.grad in place of a graph of one's own.
import torch
from given import loss_of, predict


def prepare(batch, features, hidden, outputs, steps):
    def scaled_loss(weights, x, y, weight, scale):
        with torch.autocast(x.device.type, dtype=torch.float16):
            prediction = predict(x, weights[0], weights[1])
        loss = loss_of(prediction, y, weight)
        return loss * scale, loss

    return torch.func.grad(scaled_loss, has_aux=True)


def run(gradients, x, y, weight, rate, limit, w1, w2, losses, skipped):
    scale = 65536.0
    skipped.zero_()
    for step in range(len(x)):
        slopes, losses[step] = gradients((w1, w2), x[step], y[step], weight, scale)
        if torch.stack([each.sum() for each in slopes]).isfinite().all():
            for held, slope in zip((w1, w2), slopes):
                held -= rate * torch.clip(slope / scale, -limit, limit)
        else:
            scale *= 0.5
            skipped += 1
