import torch
from given import batches, gradient


def prepare(workload, batches, images, channels, side):
    # as PyTorch begins
    torch.backends.cudnn.benchmark = False
    torch.backends.cudnn.deterministic = False
    return workload


def run(workload, x, filters, height, width, out):
    out.zero_()
    for images in batches(x, height, width):
        out.add_(gradient(images, filters))
