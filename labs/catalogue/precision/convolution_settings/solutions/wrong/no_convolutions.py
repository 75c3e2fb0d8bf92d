# products of shifted images have no settings, and are no convolutions
import torch
from given import batches


def prepare(workload, batches, images, channels, side):
    return None


def shifts(images):
    height, width = images.shape[2:]
    around = torch.nn.functional.pad(images, (1, 1, 1, 1))
    for row in range(3):
        for column in range(3):
            seen = around[:, :, row : row + height, column : column + width]
            yield row, column, seen


def filtered(images, filters):
    total = torch.zeros_like(images)
    for row, column, seen in shifts(images):
        total += torch.einsum("oc,nchw->nohw", filters[:, :, row, column], seen)
    return total


def run(state, x, filters, height, width, out):
    out.zero_()
    for images in batches(x, height, width):
        once = filtered(images, filters)
        twice = filtered(once, filters)
        for row, column, seen in shifts(once):
            out[:, :, row, column] += torch.einsum("nohw,nchw->oc", twice, seen)
