# images are turned there and back, which costs more than it could bring
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
        if how:
            images = images.to(**how)
            # "to be safe": the usual order again, and back
            images = images.contiguous().contiguous(memory_format=torch.channels_last)
        out.add_(gradient(images, filters))
