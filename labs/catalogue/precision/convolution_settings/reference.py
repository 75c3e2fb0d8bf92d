import torch
from given import FIXED, HALF, REPEAT, batches, gradient


def prepare(workload, batches, images, channels, side):
    cudnn = torch.backends.cudnn
    # trying algorithms pays where a shape comes again
    cudnn.benchmark = workload in (FIXED, HALF)
    cudnn.deterministic = workload == REPEAT
    cudnn.allow_tf32 = workload != REPEAT
    return workload


def run(workload, x, filters, height, width, out):
    how = {}
    if workload == HALF:
        how = {"dtype": torch.float16, "memory_format": torch.channels_last}
        filters = filters.to(**how)
    out.zero_()
    for images in batches(x, height, width):
        out.add_(gradient(images.to(**how) if how else images, filters))
