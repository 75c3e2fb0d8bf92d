import torch
from given import loss_of, predict


def prepare(batch, features, hidden, outputs, steps):
    # a scaler that does not grow: it would double only after 2,000 good steps
    return torch.amp.GradScaler


def run(scaler_of, x, y, weight, rate, limit, w1, w2, losses, skipped):
    device = x.device.type
    scaler = scaler_of(device, growth_interval=1_000_000)
    parameters = [torch.nn.Parameter(w1), torch.nn.Parameter(w2)]
    optimizer = torch.optim.SGD(parameters, lr=rate)
    for step in range(len(x)):
        with torch.autocast(device, dtype=torch.float16):
            # operations that need it, such as a sum, get float32 in here, too
            loss = loss_of(predict(x[step], *parameters), y[step], weight)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_value_(parameters, limit)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
        losses[step] = loss.detach()
    # the scale is halved with each step that is left out
    skipped.fill_(round(torch.tensor(65536.0 / scaler.get_scale()).log2().item()))
