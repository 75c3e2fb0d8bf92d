"""Where tensors are: `torch.device`."""

from __future__ import annotations

from warpbook_labs.simulated.recording.recorder import current
from warpbook_labs.simulated.recording.refusing import Told


class Device(Told):
    """The processor, or the one simulated GPU."""

    _spoken = "torch.device"
    type: str
    index: int | None

    def __init__(self, kind: str | Device, index: int | None = None) -> None:
        """Read a name such as "cuda:0"."""
        if not isinstance(kind, str):
            index = kind.index
            kind = kind.type
        name, colon, number = kind.partition(":")
        if colon:
            if index is not None or not number.isdecimal():
                raise RuntimeError(f"Invalid device string: '{kind}'")
            index = int(number)
        if name not in ("cpu", "cuda"):
            raise RuntimeError(
                "Expected one of cpu, cuda device type at start of device string: "
                f"{kind}"
            )
        if name == "cuda" and index not in (None, 0):
            raise RuntimeError("CUDA error: invalid device ordinal")
        self.type = name
        self.index = index

    def __eq__(self, other: object) -> bool:
        """Compare kind and number."""
        return (
            isinstance(other, Device)
            and self.type == other.type
            and self.index == other.index
        )

    def __hash__(self) -> int:
        """Take kind and number."""
        return hash((self.type, self.index))

    def __str__(self) -> str:
        """Give its name."""
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __repr__(self) -> str:
        """Show it as PyTorch does."""
        index = "" if self.index is None else f", index={self.index}"
        return f"device(type='{self.type}'{index})"

    def __enter__(self) -> Device:
        """Have new tensors here that name no device."""
        current().default_devices.append(self)
        return self

    def __exit__(self, *problem: object) -> None:
        """Have them where they were."""
        current().default_devices.pop()


CPU = Device("cpu")
#: where tensors of the GPU say that they are
CUDA = Device("cuda", 0)


def device_of(what: Device | str | int | None) -> Device:
    """The device that is meant, as tensors tell it."""
    if what is None:
        what = current().default_devices[-1]
    if what is None:
        return CPU
    if isinstance(what, int):
        return CUDA if what == 0 else Device("cuda", what)
    return CUDA if Device(what).type == "cuda" else CPU


def set_default_device(device: Device | str | int | None) -> None:
    """New tensors that name no device are here from now on."""
    current().default_devices[-1] = None if device is None else device_of(device)


def get_default_device() -> Device:
    """Where new tensors are that name no device."""
    return device_of(None)
