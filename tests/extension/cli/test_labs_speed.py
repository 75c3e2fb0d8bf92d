"""What the terminal says of a submission on a GPU."""

import msgspec
from warpbook.cli.labs_speed import device_lines

from warpbook_labs.device.limit_card import LimitCard
from warpbook_labs.device.quiet import Conditions
from warpbook_labs.device.ratio import Ratio
from warpbook_labs.device.results import DeviceCase, DeviceResult, SpeedResult

SPEED = SpeedResult(
    status="fast enough",
    message="It is as fast as the lab asks.",
    sizes={"n": 1 << 24},
    learner_ns=52_100,
    baseline_ns=65_100,
    limit_ns=45_500,
    of_baseline=Ratio(1.25, 1.246, 1.254, 80),
    of_limit=Ratio(0.873, 0.87, 0.876, 80),
    wanted_of_baseline=1.2,
    wanted_of_limit=0.85,
    calls=80,
    checked_on_host=1,
    discarded=1,
    conditions=Conditions("", (1965, 1980), 61.0, ("power cap",), ("Not told.",), 2),
)
CARD = LimitCard(
    gpu="NVIDIA H200",
    uuid="GPU-5",
    driver="580.1",
    measured_ms=0,
    copy_bytes_per_s=4.3e12,
    read_bytes_per_s=4.6e12,
    host_to_device_bytes_per_s=55.5e9,
    device_to_host_bytes_per_s=55.1e9,
    launch_latency_ns=5_200,
    flops_per_s={"float32": 52e12},
    sm_clock_mhz=1980,
    power_limit_watts=700,
    has_ecc=True,
)
RESULT = DeviceResult("NVIDIA H200", "sm_90", (), 24, 24, SPEED, CARD)


def test_all_figures_of_speed_are_told() -> None:
    assert list(device_lines(RESULT)) == [
        "On NVIDIA H200 (sm_90) all 24 cases are right.",
        "",
        "Speed: fast enough. It is as fast as the lab asks.",
        "  of the baseline's speed  1.250 (95 %: 1.246 to 1.254, 80 pairs); "
        "1.20 is asked",
        "  of this GPU's limit      87.3 % (95 %: 87.0 to 87.6 %); 85 % is asked",
        "  one call                 yours 52.1 µs, baseline 65.1 µs, limit 45.5 µs",
        "  timed with               n = 16,777,216",
        "  checked                  the output of all 80 timed calls, 1 of them on the "
        "processor too",
        "  meanwhile                clock at 1,965 to 1,980 MHz, 61 °C at most, "
        "power cap",
        "  measured                 2 times: what is disturbed is no mark",
        "  Not told.",
        "",
        "This GPU was measured to reach: copies 4.30 TB/s, reads 4.60 TB/s, from the "
        "host 55.5 GB/s, to it 55.1 GB/s, a launch 5.20 µs, float32 52.0 TFLOP/s "
        "(driver 580.1, 1,980 MHz, at most 700 W, ECC).",
    ]


def test_what_is_not_known_is_not_told_as_a_number() -> None:
    speed = SpeedResult("too busy", "Another program used the GPU.", {"n": 5})
    told = list(device_lines(msgspec.structs.replace(RESULT, speed=speed)))
    assert told[2] == "Speed: too busy. Another program used the GPU."
    assert told[3] == ""
    bare = msgspec.structs.replace(
        CARD,
        driver=None,
        flops_per_s={},
        flops_unknown="No PyTorch.",
        sm_clock_mhz=None,
        power_limit_watts=None,
        has_ecc=None,
    )
    told = list(device_lines(msgspec.structs.replace(RESULT, limit_card=bare)))
    assert told[-1].endswith("a launch 5.20 µs (No PyTorch.).")


def test_the_first_failure_and_flags_are_told_whatever_they_hold() -> None:
    failed = DeviceCase("a prime", True, False, "wrong", "out[3] is \x1b[31m5.")
    told = list(
        device_lines(
            DeviceResult(
                "H\x1b[31m", "sm_90", (failed,), 23, 24, flags=("Too fast:\nlook.",)
            )
        )
    )
    assert told == [
        "On H?[31m (sm_90) 23 of 24 cases are right.",
        "  The first that fails there (hidden): a prime",
        "  out[3] is ?[31m5.",
        "! Too fast:?look.",
    ]
