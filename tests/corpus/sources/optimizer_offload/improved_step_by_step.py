# Buckets are objects with their own times, and a plan is improved until no change of it helps.
from dataclasses import dataclass

STATE_BYTES = 12


@dataclass
class Bucket:
    params: int
    backward_s: float
    cast_on_gpu: bool
    stays: bool
    ready_s: float = 0.0

    def copy_s(self, machine, rate):
        return (
            machine["copy_s"] + self.params * (2 + 2 * self.cast_on_gpu) / machine[rate]
        )


def step_s(machine, layers, plan):
    buckets, at = [], 0
    for count, cast_on_gpu, stays in plan:
        mine = layers[at : at + count]
        at += count
        buckets.append(
            Bucket(
                sum(layer["params"] for layer in mine),
                sum(layer["backward_s"] for layer in mine),
                bool(cast_on_gpu),
                bool(stays),
            )
        )
    norm_s = 0.0
    for bucket in buckets:
        norm_s += bucket.backward_s
        if bucket.cast_on_gpu and not bucket.stays:
            norm_s += bucket.params / machine["gpu_cast_per_s"]
        bucket.ready_s = norm_s
    kept = sum(bucket.params for bucket in buckets if bucket.stays)
    gpu_s = norm_s + kept / machine["gpu_adam_per_s"]
    down_s = cpu_s = up_s = 0.0
    for bucket in buckets:
        if bucket.stays:
            continue
        down_s = max(down_s, bucket.ready_s) + bucket.copy_s(
            machine, "down_bytes_per_s"
        )
        cast_s = 0.0
        if not bucket.cast_on_gpu:
            cast_s = bucket.params / machine["cpu_cast_per_s"]
        cpu_s = max(cpu_s, down_s) + cast_s
        earliest_s = norm_s if machine["clips"] else 0.0
        cpu_s = max(cpu_s, earliest_s)
        cpu_s += machine["call_s"] + bucket.params / machine["cpu_adam_per_s"] + cast_s
        up_s = max(up_s, cpu_s) + bucket.copy_s(machine, "up_bytes_per_s")
        if bucket.cast_on_gpu:
            gpu_s = max(gpu_s, up_s) + bucket.params / machine["gpu_cast_per_s"]
    return max(gpu_s, up_s)


def plan(machine, layers):
    # a state is a choice for each layer (0 and 1: where it is cast, 2: it stays) and where
    # a bucket ends; all of one and of two changes are tried from several beginnings
    count = len(layers)
    best = None
    for choice in range(2):
        for ends in range(1 << (count - 1)):
            state = tuple([choice] * count), ends
            taken = cost(machine, layers, state)
            while True:
                improved = min(
                    (cost(machine, layers, s), s) for s in near(state, count)
                )
                if improved[0] >= taken:
                    break
                taken, state = improved
            if best is None or taken < best[0]:
                best = taken, state
    return rows_of(best[1])


def near(state, count):
    choices, ends = state
    for place in range(count):
        for choice in range(3):
            changed = (*choices[:place], choice, *choices[place + 1 :])
            yield changed, ends
            for end in range(count - 1):
                yield changed, ends ^ (1 << end)


def rows_of(state):
    choices, ends = state
    rows = []
    for place, choice in enumerate(choices):
        is_new = place == 0 or ends >> (place - 1) & 1 or choice != choices[place - 1]
        if is_new:
            rows.append([0, int(choice == 1), int(choice == 2)])
        rows[-1][0] += 1
    return rows


def cost(machine, layers, state):
    kept = sum(
        layer["params"] for layer, choice in zip(layers, state[0]) if choice == 2
    )
    if STATE_BYTES * kept > machine["spare_bytes"]:
        return float("inf")
    return step_s(machine, layers, rows_of(state))
