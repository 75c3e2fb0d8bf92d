"""One clock for each engine in a dictionary, and plans that grow bucket by bucket."""


def step_s(machine, layers, plan):
    free = dict.fromkeys(("gpu", "down", "cpu", "up"), 0.0)

    def use(engine, since, seconds):
        free[engine] = max(free[engine], since) + seconds
        return free[engine]

    layers_left = iter(layers)
    buckets = []
    for count, on_gpu, stays in plan:
        mine = [next(layers_left) for _ in range(count)]
        params = sum(layer["params"] for layer in mine)
        ready = use("gpu", 0, sum(layer["backward_s"] for layer in mine))
        buckets.append([params, on_gpu, stays, ready])
        if not stays:
            if on_gpu:
                ready = use("gpu", 0, params / machine["gpu_cast_per_s"])
            buckets[-1][3] = use(
                "down", ready, seconds(machine, "down", params, on_gpu)
            )
    norm = free["gpu"]
    for params, _, stays, _ in buckets:
        if stays:
            use("gpu", 0, params / machine["gpu_adam_per_s"])
    for params, on_gpu, stays, arrived in buckets:
        if stays:
            continue
        cast = 0 if on_gpu else params / machine["cpu_cast_per_s"]
        use("cpu", arrived, cast)
        adam = machine["call_s"] + params / machine["cpu_adam_per_s"]
        updated = use("cpu", norm if machine["clips"] else 0, adam + cast)
        back = use("up", updated, seconds(machine, "up", params, on_gpu))
        if on_gpu:
            use("gpu", back, params / machine["gpu_cast_per_s"])
    return max(free.values())


def seconds(machine, way, params, is_float32):
    size = params * (4 if is_float32 else 2)
    return machine["copy_s"] + size / machine[way + "_bytes_per_s"]


def plan(machine, layers):
    finished = []

    def grow(rows, place, room):
        if place == len(layers):
            finished.append(rows)
            return
        for end in range(place + 1, len(layers) + 1):
            state = 12 * sum(layer["params"] for layer in layers[place:end])
            for cast in (0, 1):
                grow([*rows, [end - place, cast, 0]], end, room)
            if state <= room:
                grow([*rows, [end - place, 0, 1]], end, room - state)

    grow([], 0, machine["spare_bytes"])
    return min(finished, key=lambda rows: step_s(machine, layers, rows))
