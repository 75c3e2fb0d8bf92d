"""A small training loop with something slow in it, for a cell with `%%gpuprof`."""

import random

import torch

SIDE = 64
device = "cuda" if torch.cuda.is_available() else "cpu"
pictures = [torch.rand(3, SIDE, SIDE) for _ in range(64)]
model = torch.nn.Sequential(
    torch.nn.Conv2d(3, 64, 3, padding=1),
    torch.nn.ReLU(),
    torch.nn.Conv2d(64, 64, 3, padding=1),
    torch.nn.ReLU(),
    torch.nn.Flatten(),
    torch.nn.Linear(64 * SIDE * SIDE, 1),
).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)


def turned(picture):
    """Turn a picture round, or not, and make it lighter or darker."""
    if random.random() < 0.5:
        picture = torch.stack([row.flip(-1) for row in picture.unbind(1)], 1)
    return (picture * random.uniform(0.8, 1.2)).clamp(0, 1)


def batches(count):
    """Give so many batches of 64 pictures, each drawn anew."""
    for _ in range(count):
        yield torch.stack([turned(picture) for picture in pictures]).to(device)


def step(images):
    """Train with one batch; give the loss, which stays on the GPU."""
    optimizer.zero_grad()
    loss = model(images).square().mean()
    loss.backward()
    optimizer.step()
    return loss.detach()
