import torch
from given import batches, gradient


def prepare(workload, batches, images, channels, side):
    # "benchmark = True makes it fast" stands in many notes. For which of the four?
    torch.backends.cudnn.benchmark = True
    return workload


def run(workload, x, filters, height, width, out):
    out.zero_()
    for images in batches(x, height, width):
        out.add_(gradient(images, filters))
