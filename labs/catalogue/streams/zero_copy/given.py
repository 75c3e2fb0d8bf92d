"""The host's memory as the GPU sees it, and what is done with rows."""

import torch


class _Address:
    """Says where memory is, as PyTorch and others ask for it."""

    def __init__(self, pinned):
        # the tensor that is made of this keeps it, and so the memory
        self.pinned = pinned
        self.__cuda_array_interface__ = {
            "version": 3,
            "shape": tuple(pinned.shape),
            "typestr": "<f4",
            "data": (pinned.data_ptr(), False),
        }


def seen_by_gpu(pinned):
    """Give a tensor of the GPU whose numbers stay in page-locked memory of the host.

    Nothing is copied now. What a kernel reads of it crosses the link then, each time.
    """
    is_fit = pinned.dtype == torch.float32 and pinned.is_contiguous()
    if not (is_fit and pinned.is_pinned()):
        raise ValueError("the GPU is shown page-locked float32 without gaps only")
    return torch.as_tensor(_Address(pinned), device="cuda")


def scaled(rows, out):
    """Write each row divided by the largest size in it; rows of zeros stay zeros.

    Both are float32 (rows, width) in the GPU's memory. Each number is read twice.
    """
    largest = rows.abs().amax(dim=1, keepdim=True)
    largest.masked_fill_(largest == 0, 1.0)
    torch.div(rows, largest, out=out)
