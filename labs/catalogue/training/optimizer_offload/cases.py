"""Plans of an optimizer step on the CPU, run engine by engine, against a search."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from warpbook_labs.lab.python.questions import Question

Plan = list[list[int]]
Machine = dict[str, Any]
Layers = list[dict[str, Any]]

#: FP32 weights, momentum and variance
_STATE_BYTES = 12
_BF16_BYTES, _FP32_BYTES = 2, 4
#: a plan may take so many times what the best that is known takes
_SLOWER = 1.02
#: a plan that a question is to find out takes so many times that at least
_SHOWS = 1.05
_DRAWS = 400
_CASTS = (0, 1)


class _BrokenRule(ValueError):
    """A plan can't be run; the message names the rule."""


class _Bucket(NamedTuple):
    """So many layers that travel together, by the columns of a row."""

    layers: int
    cast_on_gpu: int
    adam_on_gpu: int


def _buckets(machine: Machine, layers: Layers, plan: Plan) -> list[_Bucket]:
    """Check a plan's rows.

    Raises:
        _BrokenRule: a row is none, the layers don't add up, or the GPU has no room.
    """
    for row in plan:
        if len(row) != 3:
            words = ", ".join(_Bucket._fields)
            raise _BrokenRule(f"A row has {len(row)} numbers; it must have {words}.")
        if row[0] < 1 or not {row[1], row[2]} <= {0, 1}:
            raise _BrokenRule(f"{row}: `layers` is 1 or more, the others are 0 or 1.")
    buckets = [_Bucket(*row) for row in plan]
    count = sum(bucket.layers for bucket in buckets)
    if count != len(layers):
        raise _BrokenRule(
            f"The buckets have {count} layers; the model has {len(layers)}."
        )
    state_bytes = _state_bytes(layers, buckets)
    if state_bytes > machine["spare_bytes"]:
        raise _BrokenRule(
            f"Adam on the GPU needs {state_bytes} bytes; {machine['spare_bytes']} are "
            "spare."
        )
    return buckets


def _params(layers: Layers, buckets: Sequence[_Bucket]) -> list[int]:
    """Give the parameters of each bucket."""
    ends = itertools.accumulate(bucket.layers for bucket in buckets)
    return [
        sum(layer["params"] for layer in layers[end - bucket.layers : end])
        for bucket, end in zip(buckets, ends, strict=True)
    ]


def _state_bytes(layers: Layers, buckets: Sequence[_Bucket]) -> int:
    return _STATE_BYTES * sum(
        params
        for bucket, params in zip(buckets, _params(layers, buckets), strict=True)
        if bucket.adam_on_gpu
    )


def _step_s(machine: Machine, layers: Layers, buckets: Sequence[_Bucket]) -> float:
    """Give the seconds from the begin of backward until all weights are there."""
    gpu = down = cpu = up = 0.0
    gpu_params, place = 0, 0
    sent: list[tuple[int, int, float]] = []
    for bucket, params in zip(buckets, _params(layers, buckets), strict=True):
        for layer in layers[place : place + bucket.layers]:
            gpu += layer["backward_s"]
        place += bucket.layers
        if bucket.adam_on_gpu:
            gpu_params += params
            continue
        if bucket.cast_on_gpu:
            gpu += params / machine["gpu_cast_per_s"]
        down = max(down, gpu) + _copy_s(machine, "down", bucket.cast_on_gpu, params)
        sent.append((bucket.cast_on_gpu, params, down))
    backward_end = gpu
    gpu += gpu_params / machine["gpu_adam_per_s"]
    for cast_on_gpu, params, arrived in sent:
        cpu = max(cpu, arrived)
        cast_s = 0.0 if cast_on_gpu else params / machine["cpu_cast_per_s"]
        cpu += cast_s
        if machine["clips"]:
            cpu = max(cpu, backward_end)
        cpu += machine["call_s"] + params / machine["cpu_adam_per_s"] + cast_s
        up = max(up, cpu) + _copy_s(machine, "up", cast_on_gpu, params)
        if cast_on_gpu:
            gpu = max(gpu, up) + params / machine["gpu_cast_per_s"]
    return float(max(gpu, up))


def _copy_s(machine: Machine, way: str, cast_on_gpu: int, params: int) -> float:
    size = (_FP32_BYTES if cast_on_gpu else _BF16_BYTES) * params
    return float(machine["copy_s"] + size / machine[f"{way}_bytes_per_s"])


def _plans(layers: Layers, casts: Sequence[int] = _CASTS) -> Iterator[list[_Bucket]]:
    """Give each way to cut and place buckets, and to cast those that travel."""
    ways = [(cast, 0) for cast in casts] + [(0, 1)]
    count = len(layers)
    for cuts in itertools.product((False, True), repeat=count - 1):
        ends = [place + 1 for place, is_cut in enumerate(cuts) if is_cut] + [count]
        sizes = [end - begin for begin, end in zip([0, *ends[:-1]], ends, strict=True)]
        for chosen in itertools.product(ways, repeat=len(sizes)):
            yield [_Bucket(size, *way) for size, way in zip(sizes, chosen, strict=True)]


def _best(
    machine: Machine,
    layers: Layers,
    casts: Sequence[int] = _CASTS,
    is_allowed: Callable[[list[_Bucket]], bool] = lambda buckets: True,
) -> tuple[float, list[_Bucket]]:
    """Give the shortest time of a plan for which there is room, and the plan."""
    best = math.inf, [_Bucket(len(layers), 0, 0)]
    for buckets in _plans(layers, casts):
        if is_allowed(buckets) and (
            _state_bytes(layers, buckets) <= machine["spare_bytes"]
        ):
            best = min(best, (_step_s(machine, layers, buckets), buckets))
    return best


def _drawn(
    rng: random.Random, kind: str, count: int, clips: bool = False
) -> tuple[Machine, Layers]:
    """Draw a machine and a model; what is odd about them hangs on the kind."""
    machine: Machine = {
        "down_bytes_per_s": rng.uniform(20e9, 60e9),
        "up_bytes_per_s": rng.uniform(20e9, 60e9),
        "copy_s": rng.uniform(20e-6, 50e-6),
        "cpu_adam_per_s": rng.uniform(3e9, 8e9),
        "cpu_cast_per_s": rng.uniform(10e9, 30e9),
        "gpu_cast_per_s": rng.uniform(150e9, 400e9),
        "gpu_adam_per_s": rng.uniform(60e9, 150e9),
        "call_s": rng.uniform(1e-4, 5e-4),
        "spare_bytes": 0,
        "clips": clips,
    }
    if kind == "slow_link":
        machine["down_bytes_per_s"] = rng.uniform(6e9, 12e9)
        machine["up_bytes_per_s"] = rng.uniform(6e9, 12e9)
        machine["cpu_cast_per_s"] = rng.uniform(40e9, 80e9)
    elif kind == "fast_link":
        machine["down_bytes_per_s"] = rng.uniform(200e9, 400e9)
        machine["up_bytes_per_s"] = rng.uniform(200e9, 400e9)
        machine["cpu_cast_per_s"] = rng.uniform(4e9, 10e9)
    params = [rng.randint(20_000_000, 150_000_000) for _ in range(count)]
    if kind == "small_layers":
        params = [rng.randint(500_000, 3_000_000) for _ in range(count)]
        machine["call_s"] = rng.uniform(4e-4, 2e-3)
    elif kind == "large_embedding":
        params[-1] *= rng.randint(2, 5)
    per_param_s = rng.uniform(0.5, 2.5) / machine["cpu_adam_per_s"]
    layers = [
        {
            "params": number,
            "backward_s": number * per_param_s * rng.uniform(0.5, 1.5),
        }
        for number in params
    ]
    if kind in ("room", "room_apart", "large_embedding"):
        room = sum(rng.sample(params, 2))
        machine["spare_bytes"] = _STATE_BYTES * room + rng.choice((0, 1000))
    return machine, layers


def _finds_out(kind: str, machine: Machine, layers: Layers) -> bool:
    """Say whether a usual mistake takes noticeably longer than the best plan."""
    best, _ = _best(machine, layers)
    count = len(layers)

    def restricted(is_allowed: Callable[[list[_Bucket]], bool]) -> float:
        return _best(machine, layers, is_allowed=is_allowed)[0]

    if kind == "slow_link":
        other = _best(machine, layers, casts=(1,))[0]
    elif kind == "fast_link":
        other = _best(machine, layers, casts=(0,))[0]
    elif kind == "small_layers":
        other = restricted(lambda buckets: len(buckets) == count)
    elif kind == "large_layers":
        other = restricted(lambda buckets: len(buckets) == 1)
    elif kind == "both_casts":
        other = min(_best(machine, layers, casts=(cast,))[0] for cast in _CASTS)
    elif kind == "large_embedding":
        # who counts a third of the state, or none of it
        free = {**machine, "spare_bytes": 3 * machine["spare_bytes"]}
        return best > _SHOWS * _best(free, layers)[0]
    elif kind == "room":
        # nothing on the GPU, what comes first there, and less than there is room for
        less = {**machine, "spare_bytes": machine["spare_bytes"] * 12 // 13}
        other = min(
            _best(less, layers)[0],
            restricted(lambda buckets: not any(one.adam_on_gpu for one in buckets)),
            restricted(lambda buckets: not buckets[-1].adam_on_gpu),
        )
    elif kind == "room_apart":
        other = restricted(
            lambda buckets: buckets == sorted(buckets, key=lambda one: one.adam_on_gpu)
        )
    else:
        _, misled = _best({**machine, "clips": False}, layers)
        other = _step_s(machine, layers, misled)
    return other > _SHOWS * best


_KINDS = {
    "slow_link": "a slow link",
    "fast_link": "a fast link, and a CPU that casts slowly",
    "small_layers": "small layers",
    "large_layers": "large layers",
    "both_casts": "gradients are clipped, and one cast is not the best for all",
    "room": "room for some optimizer state on the GPU",
    "room_apart": "room for the state of some layers that are apart",
    "large_embedding": "a large embedding, and room for some optimizer state",
    "clipping": "gradients are clipped by their norm",
}


#: plans to be timed, by what is odd about them
_ENDS: dict[str, Plan] = {
    "all stays": [[3, 0, 1]],
    "one layer": [[1, 1, 0]],
    "the GPU is done last": [[2, 0, 1], [1, 1, 0], [2, 1, 1], [1, 0, 0]],
}


def questions(rng: random.Random) -> list[Question]:
    """Draw plans to be timed, and machines on which the usual mistakes cost time."""
    drawn = []
    for clips, kind, last_cast in itertools.product(
        (False, True), ("slow_link", "fast_link"), _CASTS
    ):
        machine, layers = _drawn(rng, kind, rng.randint(4, 6), clips)
        plan = _mixed(rng, len(layers), last_cast)
        machine["spare_bytes"] = _STATE_BYTES * sum(layer["params"] for layer in layers)
        given = {"machine": machine, "layers": layers, "plan": plan}
        about = "with clipping" if clips else "without clipping"
        drawn.append(Question("step_s", given, about))
    for about, rows in _ENDS.items():
        count = sum(row[0] for row in rows)
        machine, layers = _drawn(rng, "slow_link", count, rng.random() < 0.5)
        machine["spare_bytes"] = _STATE_BYTES * sum(layer["params"] for layer in layers)
        if about == "the GPU is done last":
            machine["gpu_adam_per_s"] = machine["cpu_adam_per_s"] / 10
        given = {"machine": machine, "layers": layers, "plan": rows}
        drawn.append(Question("step_s", given, about))
    for kind in (*_KINDS, "room", "room_apart"):
        for _ in range(_DRAWS):
            clips = kind in ("clipping", "both_casts")
            machine, layers = _drawn(rng, kind, rng.randint(4, 5), clips)
            if _finds_out(kind, machine, layers):
                break
        given = {"machine": machine, "layers": layers}
        drawn.append(Question("plan", given, _KINDS[kind]))
    return drawn


def _mixed(rng: random.Random, count: int, last_cast: int) -> Plan:
    """Draw a plan with each kind of bucket; the last one travels."""
    first = rng.randint(1, count - 3)
    # of one that stays the cast says nothing
    rows = [[first, 0, 0], [1, 1, 0], [1, 1 - last_cast, 1]]
    rng.shuffle(rows)
    return [*rows, [count - first - 2, last_cast, 0]]


def judge(question: Question, answer: Any) -> str:
    """Compare a time, or run a plan and hold it against the best that is known."""
    given = question.arguments
    machine, layers = given["machine"], given["layers"]
    if question.function == "step_s":
        buckets = _buckets(machine, layers, given["plan"])
        right = _step_s(machine, layers, buckets)
        is_right = math.isclose(answer, right, rel_tol=1e-6)
        return "" if is_right else f"Returned {answer:.6g}; expected {right:.6g}."
    try:
        buckets = _buckets(machine, layers, answer)
    except _BrokenRule as problem:
        return str(problem)
    taken = _step_s(machine, layers, buckets)
    known, _ = _best(machine, layers)
    if taken <= _SLOWER * known:
        return ""
    backward = sum(layer["backward_s"] for layer in layers)
    return (
        f"It takes {1e3 * taken:.4g} ms, {1e3 * (taken - backward):.4g} ms of them "
        f"behind backward; {1e3 * _SLOWER * known:.4g} ms are enough."
    )
