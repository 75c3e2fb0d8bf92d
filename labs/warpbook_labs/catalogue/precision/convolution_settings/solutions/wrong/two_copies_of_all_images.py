# one copy for the dtype, and another for the order
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
    if workload == HALF:
        filters = filters.half().contiguous(memory_format=torch.channels_last)
        x = x.permute(0, 1, 3, 4, 2).half().contiguous().permute(0, 1, 4, 2, 3)
    out.zero_()
    for images in batches(x, height, width):
        out.add_(gradient(images, filters))
