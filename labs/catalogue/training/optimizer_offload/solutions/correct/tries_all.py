"""An optimizer step on the CPU: its time, and the plan with the shortest one."""

from itertools import product


def step_s(machine, layers, plan):
    """Run the four engines: each bucket passes from one to the next."""
    gpu = down = cpu = up = 0.0
    gpu_params, place, sent = 0, 0, []
    for count, cast_on_gpu, adam_on_gpu in plan:
        bucket = layers[place : place + count]
        place += count
        params = sum(layer["params"] for layer in bucket)
        gpu += sum(layer["backward_s"] for layer in bucket)
        if adam_on_gpu:
            gpu_params += params
            continue
        if cast_on_gpu:
            gpu += params / machine["gpu_cast_per_s"]
        size = (4 if cast_on_gpu else 2) * params
        down = max(down, gpu) + machine["copy_s"] + size / machine["down_bytes_per_s"]
        sent.append((params, cast_on_gpu, size, down))
    backward_end = gpu
    gpu += gpu_params / machine["gpu_adam_per_s"]
    for params, cast_on_gpu, size, arrived in sent:
        cast_s = 0.0 if cast_on_gpu else params / machine["cpu_cast_per_s"]
        cpu = max(cpu, arrived) + cast_s
        if machine["clips"]:
            cpu = max(cpu, backward_end)
        cpu += machine["call_s"] + params / machine["cpu_adam_per_s"] + cast_s
        up = max(up, cpu) + machine["copy_s"] + size / machine["up_bytes_per_s"]
        if cast_on_gpu:
            gpu = max(gpu, up) + params / machine["gpu_cast_per_s"]
    return max(gpu, up)


def plan(machine, layers):
    """Try every way to cut, to place and to cast, and keep the fastest that fits."""
    best, best_s = None, float("inf")
    for sizes in cuts(len(layers)):
        for places in product((0, 1), repeat=len(sizes)):
            if not fits(machine, layers, sizes, places):
                continue
            for casts in product((0, 1), repeat=len(sizes)):
                rows = [list(row) for row in zip(sizes, casts, places)]
                taken = step_s(machine, layers, rows)
                if taken < best_s:
                    best, best_s = rows, taken
    return best


def cuts(count):
    """Give each way to write a number of layers as a sum."""
    if count == 0:
        return [[]]
    return [
        [first, *rest] for first in range(1, count + 1) for rest in cuts(count - first)
    ]


def fits(machine, layers, sizes, places):
    """Say whether the GPU has room for the state of the buckets that stay there."""
    place = params = 0
    for size, on_gpu in zip(sizes, places):
        if on_gpu:
            params += sum(layer["params"] for layer in layers[place : place + size])
        place += size
    return 12 * params <= machine["spare_bytes"]
