"""A real kernel says where it is, and feeds pages of servers that are elsewhere."""

from __future__ import annotations

from typing import Any

import msgspec

from warpbook_monitors.machine import this_machine

HERE = msgspec.to_builtins(this_machine())


def test_a_kernel_offers_its_machine_and_reads_only_for_who_asks(
    stub_nvml: Any, kernel: Any
) -> None:
    comm, machine = kernel.offers[-1]
    assert machine == HERE
    # a page that was opened later
    kernel.say_over(comm, {"view": "who"})
    count = len(kernel.offers)
    while len(kernel.offers) == count:
        kernel.hear()
    assert kernel.offers[-1] == (comm, HERE)
    for nonsense in ({"view": 7}, {}, {"view": ["here"]}):
        kernel.say_over(comm, nonsense)
    kernel.run("0")
    assert stub_nvml.calls() == 0 and kernel.telemetry == []

    kernel.say_over(comm, {"view": "here", "greeted": False})
    hello = kernel.next_message("hello")
    assert [device["kind"] for device in hello["devices"]].count("gpu") == 1
    assert (hello["rate_hz"], hello["replay"]) == (5.0, None)
    kernel.next_message("frame")


def test_a_machine_without_a_gpu_plays_no_recording(kernel: Any) -> None:
    """The page's server may; here it would pass for what the notebook uses."""
    comm, _ = kernel.offers[-1]
    kernel.say_over(comm, {"view": "here", "greeted": False})
    hello = kernel.next_message("hello")
    assert hello["replay"] is None
    assert [device["kind"] for device in hello["devices"]] == ["host"]
    assert [absence["what"] for absence in hello["absences"]] == ["NVML"]
