"""Labs of several GPUs run for real: processes that send, by gloo on the CPU."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.labs.given_cells import ran
from warpbook_labs.course.session import find
from warpbook_monitors.nvml import gate

pytest.importorskip("torch")
from warpbook_labs import ranks

COLLECTIVES = """
import given, json
measured = given.measure({ranks}, sizes_bytes=(4096, 65536))
print(given.table(measured))
print(json.dumps([measured, given.fit([1, 10, 100], [7.0, 25.0, 205.0])]))
"""
PLANS = """
import given, json
results = given.measure(2, model=given.MODEL | {"kv_heads": 4, "sequence": 16}, batch=4)
print(given.table(results))
print(json.dumps(results))
"""
PIPELINE = """
import given, json
size = {"layers": 4, "width": 32, "micro_batches": 4, "rows": 8}
results = given.measure(2, size=size)
print(given.table(results))
said = []
for schedule in ([[0, 0, 0, 0]], [[0, 0, 0, 1], [0, 0, 0, 0]]):
    try:
        given.refuse_unfit(1, 1, 1, schedule)
    except ValueError as problem:
        said.append(str(problem))
print(json.dumps([results, said]))
"""
BY_HAND = """
import given, json
measured = given.measure({ranks}, tokens=11, hidden=7, inner=31, calls=1)
print(given.table(measured))
print(json.dumps(measured))
"""


def test_schedules_of_a_learner_sum_up_on_real_ranks(tmp_path: Path) -> None:
    measured, line = ran("collectives", tmp_path, COLLECTIVES.format(ranks=3))
    assert measured["right"] == ["ring", "tree", "halving_doubling"]
    assert measured["link"]["kind"] == "gloo on the CPU"
    for row in measured["rows"]:
        assert all(row[name] > 0 for name in (*measured["right"], "all_reduce"))
    # 5 + 2 n, exactly
    assert line == pytest.approx([5, 2])


def test_a_schedule_whose_sums_are_wrong_is_said_to_be(tmp_path: Path) -> None:
    source = next(
        source
        for name, source in find("collectives").wrong.items()
        if name.startswith("no_all_gather")
    )
    measured, _ = ran("collectives", tmp_path, COLLECTIVES.format(ranks=2), source)
    assert "ring" not in measured["right"] and "tree" in measured["right"]


def test_split_layers_equal_one_device_and_send_what_the_lab_says(
    tmp_path: Path,
) -> None:
    results = ran("parallel-plans", tmp_path, PLANS)
    assert list(results) == ["one device", "data", "tensor", "sequence"]
    for kind, result in results.items():
        # FP32, summed up in another order
        assert result["error"] < 1e-5, kind
        # gradients of norms, which the rules leave out: 2 bytes each, in a ring of two
        norms = 2 * 256 * 2 * 2 if kind == "sequence" else 0
        assert result["sent_bytes"] == result["predicted_bytes"] + norms, kind
    assert results["data"]["sent_bytes"] > 0 and results["tensor"]["sent_bytes"] > 0


def test_stages_of_a_pipeline_have_the_gradients_of_one_device(tmp_path: Path) -> None:
    results, said = ran("pipeline-schedules", tmp_path, PIPELINE)
    message_bytes = 8 * 32 * 4
    # of two stages: what each schedule may hold, and boundaries between its chunks
    for name, held, boundaries in (
        ("gpipe", 4, 1),
        ("one_f_one_b", 2, 1),
        ("interleaved", 2.5, 3),
        ("capped", 1, 1),
    ):
        result = results[name]
        assert result["error"] < 1e-5, name
        assert result["held"] == held, name
        # four micro-batches, forward and back
        assert result["sent_bytes"] == boundaries * 4 * 2 * message_bytes, name
        assert 0 <= result["bubble"] < 1
    assert results["gpipe"]["predicted_bubble"] == pytest.approx(1 / 5)
    assert said[0].startswith("Each stage does each chunk of each micro-batch once")
    assert said[1] == "A stage waits for what never comes."


#: a stub GPU alone has no NVLink that is up, and two have 18 of 25 GB/s one way
@pytest.mark.parametrize(
    ("gpus", "kind", "bytes_per_s"),
    [(("h200",), "PCIe", 16 * 3938e6), (("h200", "h200"), "NVLink", 18 * 25e9)],
)
def test_the_link_between_gpus_is_what_nvml_tells(
    make_stub_nvml, gpus: tuple[str, ...], kind: str, bytes_per_s: float
) -> None:
    make_stub_nvml(*gpus)
    handles = [
        gate.call("nvmlDeviceGetHandleByIndex", index) for index in range(len(gpus))
    ]
    uuids = [gate.call("nvmlDeviceGetUUID", handle) for handle in handles]
    assert ranks.gpu_link(uuids) == {"kind": kind, "bytes_per_s": bytes_per_s}


def test_functions_of_ranks_have_the_results_of_one_device(tmp_path: Path) -> None:
    # sizes that three ranks do not divide, by send and receive and by collectives
    source = find("parallelism-by-hand").correct["by_send_and_receive.py"]
    cell = BY_HAND.format(ranks=3)
    measured = ran("parallelism-by-hand", tmp_path, cell, source)
    assert (measured["backend"], measured["ranks"]) == ("gloo", 3)
    functions = ["tensor_parallel", "sequence_parallel", "data_parallel"]
    assert list(measured["results"]) == functions
    for name, result in measured["results"].items():
        assert result["error"] < 1e-5, name
        assert 0 < result["sent_bytes"] <= result["enough_bytes"], name


def test_a_rank_that_keeps_its_part_is_off_by_far(tmp_path: Path) -> None:
    source = find("parallelism-by-hand").wrong["a_part_for_the_sum.py"]
    cell = BY_HAND.format(ranks=2)
    results = ran("parallelism-by-hand", tmp_path, cell, source)["results"]
    assert results["tensor_parallel"]["error"] > 0.1
    assert results["sequence_parallel"]["error"] < 1e-5
