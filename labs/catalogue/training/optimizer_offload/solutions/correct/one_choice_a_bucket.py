"""Each set of ends with each choice for its buckets; engines are lists of what ends."""

from itertools import accumulate, combinations, product

CAST_ON_CPU, CAST_ON_GPU, STAYS = (0, 0), (1, 0), (0, 1)


def step_s(machine, layers, plan):
    ends = list(accumulate(count for count, _, _ in plan))
    parts = [layers[end - row[0] : end] for end, row in zip(ends, plan)]
    params = [sum(layer["params"] for layer in part) for part in parts]
    gpu = [0.0]
    ready = []
    for part, size, (_, cast, stays) in zip(parts, params, plan):
        busy = sum(layer["backward_s"] for layer in part)
        busy += size / machine["gpu_cast_per_s"] if cast and not stays else 0
        gpu.append(gpu[-1] + busy)
        ready.append(gpu[-1])
    backward = gpu[-1]
    kept = sum(size for size, row in zip(params, plan) if row[2])
    gpu.append(backward + kept / machine["gpu_adam_per_s"])
    down, cpu, up = [0.0], [backward if machine["clips"] else 0.0], [0.0]
    casting = [0.0]
    for size, (_, cast, stays), at in zip(params, plan, ready):
        if stays:
            continue
        sent = size * (4 if cast else 2)
        wait = machine["copy_s"] + sent / machine["down_bytes_per_s"]
        down.append(max(down[-1], at) + wait)
        own = 0 if cast else size / machine["cpu_cast_per_s"]
        casting.append(max(casting[-1], down[-1]) + own)
        adam = machine["call_s"] + size / machine["cpu_adam_per_s"] + own
        cpu.append(max(cpu[-1], casting[-1]) + adam)
        casting[-1] = cpu[-1]
        wait = machine["copy_s"] + sent / machine["up_bytes_per_s"]
        up.append(max(up[-1], cpu[-1]) + wait)
        if cast:
            gpu.append(max(gpu[-1], up[-1]) + size / machine["gpu_cast_per_s"])
    return max(gpu[-1], up[-1])


def plan(machine, layers):
    return min(plans(machine, layers), key=lambda rows: step_s(machine, layers, rows))


def plans(machine, layers):
    total = len(layers)
    for buckets in range(1, total + 1):
        for inner in combinations(range(1, total), buckets - 1):
            ends = [0, *inner, total]
            spans = list(zip(ends, ends[1:]))
            for choice in product((CAST_ON_CPU, CAST_ON_GPU, STAYS), repeat=buckets):
                rows = [[b - a, *one] for (a, b), one in zip(spans, choice)]
                kept = sum(
                    layer["params"]
                    for (a, b), one in zip(spans, choice)
                    for layer in layers[a:b]
                    if one == STAYS
                )
                if 12 * kept <= machine["spare_bytes"]:
                    yield rows
