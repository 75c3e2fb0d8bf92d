"""Short names that tell devices apart."""

from warpbook_monitors.frames import Device
from warpbook_monitors.labels import device_label

GPU = Device("gpu:a", "gpu", "NVIDIA H200", 3, "live", ())


def instance(gpu_instance: int, compute_instance: int) -> Device:
    facts = {
        "parent": GPU.id,
        "gpu_instance_id": gpu_instance,
        "compute_instance_id": compute_instance,
    }
    name = "NVIDIA H200 MIG 1g.18gb"
    device_id = f"mig:{gpu_instance}-{compute_instance}"
    return Device(device_id, "mig", name, None, "live", (), facts)


def test_equal_devices_have_names_of_their_own() -> None:
    host = Device("host", "host", "node7", None, "live", ())
    alone, one, two = instance(7, 0), instance(9, 0), instance(9, 1)
    devices = [one, GPU, host, two, alone]
    assert [device_label(device, devices) for device in devices] == [
        "MIG 3:9/0",
        "GPU 3",
        "Host",
        "MIG 3:9/1",
        "MIG 3:7",
    ]


def test_what_is_not_known_of_an_instance_is_left_out() -> None:
    assert device_label(instance(7, 0), []) == "MIG ?:7"
    strange = Device("mig:x", "mig", "x" * 500, None, "live", ())
    assert device_label(strange, [strange]) == "x" * 60
