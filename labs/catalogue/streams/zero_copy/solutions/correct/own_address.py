# the table as the GPU sees it, made without given.py; rows arrive on their own stream
import torch
from given import scaled


class Address:
    def __init__(self, pinned):
        self.pinned = pinned
        self.__cuda_array_interface__ = {
            "version": 3,
            "shape": tuple(pinned.shape),
            "typestr": "<f4",
            "data": (pinned.data_ptr(), False),
        }


def prepare(rows, picked, width):
    return torch.cuda.Stream(), torch.empty(picked, width, device="cuda")


def run(state, table, which, out):
    side, here = state
    seen = torch.as_tensor(Address(table), device="cuda")
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        torch.index_select(seen, 0, which, out=here)
    torch.cuda.current_stream().wait_stream(side)
    scaled(here, out)
