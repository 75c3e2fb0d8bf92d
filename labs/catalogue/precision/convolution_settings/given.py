"""Four workloads, and what each of them computes."""

import torch

#: the same inputs must give the same bits, and the accuracy of float32
REPEAT = 1
#: all batches have one shape, in every call
FIXED = 2
#: batches have new shapes all the time
CHANGING = 3
#: one shape, of numbers that fit into half precision
HALF = 4


def batches(x, height, width):
    """Give the batches of a call: whole if height is 0, else crops that grow."""
    for number, images in enumerate(x):
        if height:
            images = images[:, :, : height + number, : width + number].contiguous()
        yield images


def gradient(images, filters):
    """Filter the images twice; of half the sum of squares, give the last's gradient."""
    conv2d = torch.nn.functional.conv2d
    once = conv2d(images, filters, padding=1)
    twice = conv2d(once, filters, padding=1)
    return torch.nn.grad.conv2d_weight(once, filters.shape, twice, padding=1)
