"""Who holds a GPU, and what they are charged: real processes on the stub library."""

from __future__ import annotations

import os
import pwd
from collections.abc import Callable

import pytest

from tests.monitors.holders.agent import process_of
from tests.programs import wait_for
from tests.stub_nvml import NOT_SUPPORTED, UNKNOWN, StubNvml
from warpbook_monitors.exposition.holder_shares import MOST_SERIES, HolderCollector
from warpbook_monitors.frames import Device, Frame, Metric, Reading
from warpbook_monitors.holders.identity import NOBODY_KNOWN, workload_in
from warpbook_monitors.holders.ledger import Ledger
from warpbook_monitors.holders.reading import Held, HolderReader
from warpbook_monitors.holders.shares import (
    MOST_HOLDERS,
    GpuShare,
    Holder,
    HolderShare,
    Workload,
)
from warpbook_monitors.nvml.probe import NvmlSource

needs_root = pytest.mark.skipif(
    os.geteuid() != 0, reason="only root starts processes of other accounts"
)
GIB = 2**30
ID = "0123456789ab" + "cd" * 26
POD = "01234567-89ab-cdef-0123-456789abcdef"
METRICS = tuple(
    Metric(name, "ratio", name) for name in ("memory_used_bytes", "energy_joules")
)
GPU = Device("gpu:GPU-1", "gpu", "H100", 0, "live", METRICS)


@needs_root
def test_facts_are_the_kernels_and_a_claim_is_a_claim(stub_nvml: StubNvml) -> None:
    device = NvmlSource().open().probes[0].device
    with (
        process_of("games", JUPYTERHUB_USER="ada") as liar,
        process_of("news", OTHER="x" * 10_000, JUPYTERHUB_USER="<b>\x1b[31m") as odd,
        process_of("games", JUPYTERHUB_USER="ada"),
    ):
        stub_nvml.work(0, (liar, 40), (odd, 0), (2**30, 0))
        reader = HolderReader()

        def look() -> dict[Holder, Held] | None:
            held = {h.holder: h for h in reader.look([device])[device.id]}
            # until the programs have begun their environment is this one's
            return held if any(h.hub_user == "ada" for h in held) else None

        held = wait_for("the holders", look)
    games, news = (pwd.getpwnam(name).pw_uid for name in ("games", "news"))
    by_uid = {holder.uid: holder for holder in held}
    assert set(by_uid) == {games, news, None}
    assert by_uid[games].account == "games"
    # what can't be a name is none
    assert by_uid[news].hub_user == ""
    assert held[by_uid[games]].busy_ratio == 0.4
    assert held[by_uid[news]].busy_ratio == 0
    assert held[by_uid[news]].memory_bytes == GIB
    # a PID of nobody here
    assert by_uid[None] == NOBODY_KNOWN


def test_holders_of_instances_are_those_of_their_gpu(
    make_stub_nvml: Callable[..., StubNvml],
) -> None:
    stub = make_stub_nvml("h200")
    stub.set(0, mig=1)
    instance = stub.make_instance(0, 0)
    instance.pid, instance.memory_used_bytes = os.getpid(), GIB
    devices = [probe.device for probe in NvmlSource().open().probes]
    assert [device.kind for device in devices] == ["gpu", "mig"]
    ((held,),) = HolderReader().look(devices).values()
    assert (held.holder.uid, held.busy_ratio) == (os.getuid(), None)


@pytest.mark.parametrize(
    ("path", "kind", "name"),
    [
        ("/slurm/uid_1000/job_42/step_0/task_0", "slurm", "42"),
        ("/system.slice/slurmstepd.scope/job_42/step_0/user", "slurm", "42"),
        ("/system.slice/node1_slurmstepd.scope/job_7", "slurm", "7"),
        (f"/kubepods/burstable/pod{POD}/{ID}", "kubernetes", POD),
        (f"/kubepods/pod{POD}/{ID}", "kubernetes", POD),
        (
            "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod"
            f"{POD.replace('-', '_')}.slice/cri-containerd-{ID}.scope",
            "kubernetes",
            POD,
        ),
        (f"/docker/{ID}", "container", "0123456789ab"),
        (f"/system.slice/docker-{ID}.scope", "container", "0123456789ab"),
        (f"/machine.slice/libpod-{ID}.scope/container", "container", "0123456789ab"),
        ("/system.slice/jupyter-ada.service", "systemd", "jupyter-ada.service"),
        ("/user.slice/user-7.slice/session-3.scope", "systemd", "session-3.scope"),
        # below their own service users name cgroups as they like
        (
            "/user.slice/user-7.slice/user@7.service/slurm/uid_8/job_42",
            "systemd",
            "user@7.service",
        ),
        (f"/user.slice/user-7.slice/user@7.service/docker/{ID}", "systemd", None),
        ("/system.slice/x.service/kubepods/pod" + POD, "systemd", "x.service"),
        ("/", "", ""),
        ("", "", ""),
    ],
)
def test_workloads_are_what_root_named(path: str, kind: str, name: str | None) -> None:
    read = workload_in(f"12:pids:/\n0::{path}\n")
    assert read.kind == kind
    assert name is None or read.name == name


def test_garbage_is_no_workload() -> None:
    assert workload_in("::::\nx\n\0\n1:\n") == Workload()


def holder(uid: int) -> Holder:
    return Holder(uid, f"user{uid}", "", Workload())


def frame(joules: float | None) -> Frame:
    return Frame(1, 0.0, (Reading(0, "ok", (1.0, joules)),))


def held(uid: int, busy: float | None, bytes_: int = GIB) -> Held:
    return Held(holder(uid), 1, bytes_, busy)


def charged(*looks: tuple[float | None, tuple[Held, ...]]):
    """Charge looks, each five seconds after the one before, by a counter in joules."""
    ledger = Ledger()
    ledger.add([GPU], [frame(100.0)], {}, 0)
    for joules, holders in looks:
        ledger.add([GPU], [frame(joules)], {GPU.id: holders}, 5000)
    (gpu,) = ledger.close()
    return gpu, {share.holder.uid: share for share in gpu.holders}


def test_energy_is_the_counters_and_all_of_it_is_charged() -> None:
    looks = [(111.0, (held(1, 0.3), held(2, 0.1))), (112.001, (held(1, 0.0),))]
    gpu, by_uid = charged(*looks)
    assert gpu.energy_mj == 12_001
    # by the work of the first look; who holds it alone pays for its idling
    assert (by_uid[1].energy_mj, by_uid[2].energy_mj) == (8250 + 1001, 2750)
    assert (by_uid[1].held_ms, by_uid[1].busy_ms) == (10_000, 1500)
    assert (by_uid[2].held_ms, by_uid[2].is_there) == (5000, False)


def test_who_does_not_work_shares_alike_and_nobody_pays_for_an_empty_gpu() -> None:
    idle = (held(1, 0.0), held(2, 0.0), held(3, 0.0))
    gpu, by_uid = charged((110.0, idle), (120.0, ()))
    assert gpu.energy_mj == 20_000
    assert [share.energy_mj for share in by_uid.values()] == [3333, 3334, 3333]
    gpu, by_uid = charged((110.0, (held(1, None), held(2, 0.9))))
    assert [share.energy_mj for share in by_uid.values()] == [5000, 5000]
    assert by_uid[1].busy_ms is None


def test_what_is_not_counted_is_not_known_and_a_new_driver_owes_nothing() -> None:
    gpu, by_uid = charged((None, (held(1, 0.5),)))
    assert (gpu.energy_mj, by_uid[1].energy_mj) == (None, None)
    gpu, by_uid = charged((3.0, (held(1, 0.5),)))
    assert (gpu.energy_mj, by_uid[1].energy_mj) == (0, 0)
    # a counter that is broken
    gpu, by_uid = charged((1e9, (held(1, 0.5),)))
    assert (gpu.energy_mj, by_uid[1].energy_mj) == (None, None)


def test_work_that_can_not_be_is_unknown(stub_nvml: StubNvml) -> None:
    device = NvmlSource().open().probes[0].device
    with process_of(None) as pid:
        for percent, ratio in ((100, 1.0), (101, None), (4_294_967_295, None)):
            stub_nvml.work(0, (pid, percent))
            (held_now,) = HolderReader().look([device])[device.id]
            assert held_now.busy_ratio == ratio


def test_who_can_not_be_listed_is_not_nobody(stub_nvml: StubNvml) -> None:
    device = NvmlSource().open().probes[0].device
    stub_nvml.hold(0, (os.getpid(), GIB))
    for status in (NOT_SUPPORTED, UNKNOWN):
        stub_nvml.fault("nvmlDeviceGetComputeRunningProcesses_v3", rc=status)
        assert HolderReader().look([device]) == {}
    ledger = Ledger()
    ledger.add([GPU], [frame(1.0)], {GPU.id: (held(1, 0.0),)}, 5000)
    ledger.add([GPU], [frame(9.0)], {}, 5000)
    (gpu,) = ledger.close()
    assert (gpu.holders[0].held_ms, gpu.holders[0].is_there) == (5000, False)


def test_a_crowd_is_bounded_and_charged_whole() -> None:
    crowd = tuple(held(uid, 0.01) for uid in range(40))
    gpu, by_uid = charged((140.0, crowd))
    assert len(gpu.holders) == MOST_HOLDERS
    assert sum(share.energy_mj or 0 for share in gpu.holders) == 40_000
    # those who share an entry held it at the same time
    assert by_uid[None].held_ms == 5000
    assert (by_uid[None].busy_ms or 0) <= 5000


def test_series_are_bounded_and_their_names_plain() -> None:
    collector = HolderCollector()
    odd = Holder(1, 'a"b\n', "<i>" + "x" * 90, Workload("systemd", "a b.service"))
    holders = [HolderShare(odd, 2, GIB, 10_000, 2500, 7000, True)]
    holders += [
        HolderShare(holder(uid), 1, None, 1000, None, None, True)
        for uid in range(2, 400)
    ]
    gone = HolderShare(holder(999), 1, GIB, 1000, 0, 0, False)
    gpu = GpuShare("GPU-1", 1, (*holders, gone))
    collector.take((gpu,))
    collector.take((gpu,))
    samples = [s for family in collector.collect() for s in family.samples]
    first = {s.name.removeprefix("warpbook_gpu_holder_"): s for s in samples[::-1]}
    energy = first["energy_joules_total"]
    assert energy.value == 14
    assert energy.labels["account"] == "a_b_"
    assert energy.labels["hub_user"] == "_i_" + "x" * 61
    assert energy.labels["workload"] == "systemd:a_b.service"
    assert [s.value for s in samples if s.name.endswith("busy_ratio")] == [0.25]
    assert [s.name for s in samples].count(
        "warpbook_gpu_holder_processes"
    ) == MOST_SERIES
