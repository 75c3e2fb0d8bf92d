"""Batches of a real endpoint of Ray Serve: your `batch`, and `@serve.batch`.

The endpoint computes on a GPU, or on a core without one. Its models are alike: layers
whose weights are read for each batch, which is the fixed time. Nothing here is graded.
"""

import asyncio
import math
import os
import random
import statistics
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import torch

try:
    import ray
    from ray import serve
except ModuleNotFoundError as problem:
    raise ModuleNotFoundError(
        f"{problem}: pip install 'warpbook-labs[ray]'. Nothing that is graded needs it."
    ) from None

WIDTH, LAYERS = 2048, 8
SIZES = (1, 2, 4, 8, 16, 32)
ROUNDS = 7
WAIT = "wait_ms"
APPLICATION = "endpoint"

#: what starts a Ray of this machine alone
HERE = {"address": "local", "include_dashboard": False}

# the endpoint is handed this module's classes, and need not find the file
ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])


def network():
    """Give a model, as yet without weights of its own, on a GPU if there is one."""
    layers = [
        part
        for _ in range(LAYERS)
        for part in (torch.nn.Linear(WIDTH, WIDTH), torch.nn.ReLU())
    ]
    return torch.nn.Sequential(*layers).to(device())


def device():
    """Give what models are computed on."""
    return "cuda" if torch.cuda.is_available() else "cpu"


def write_models(names, folder):
    """Write the weights of each model into a file of its name."""
    for number, name in enumerate(names):
        torch.manual_seed(number)
        torch.save(network().state_dict(), Path(folder) / name)


@torch.inference_mode()
def load(path):
    """Read a model's weights from its file."""
    model = network()
    model.load_state_dict(torch.load(path, map_location=device()))
    return model


@torch.inference_mode()
def compute(model, count):
    """Answer so many requests: a number each."""
    inputs = torch.ones(count, WIDTH, device=device())
    return model(inputs).sum(1).tolist()


def service_times(path):
    """Time a load and batches of several sizes in this process.

    Returns:
        `load_s`, and `fixed_s` and `item_s` of the line that fits the batches best.
    """
    torch.set_num_threads(1)
    loads_s = []
    for _ in range(3):
        begun_s = time.perf_counter()
        model = load(path)
        loads_s.append(time.perf_counter() - begun_s)
    compute(model, SIZES[-1])
    times_s = []
    for size in SIZES:
        rounds_s = []
        for _ in range(ROUNDS):
            begun_s = time.perf_counter()
            compute(model, size)
            rounds_s.append(time.perf_counter() - begun_s)
        times_s.append(statistics.median(rounds_s))
    item_s, fixed_s = np.polyfit(SIZES, times_s, 1)
    return {
        "fixed_s": max(float(fixed_s), 1e-6),
        "item_s": max(float(item_s), 1e-9),
        "load_s": statistics.median(loads_s),
    }


def arrivals(per_second, requests, seed=1):
    """Draw when requests come: exponential times between them, for each model.

    Returns:
        Pairs of seconds and a model's name, the first one first.
    """
    rng, drawn = random.Random(seed), []
    for name, rate in per_second.items():
        at_s, count = 0.0, round(requests * rate / sum(per_second.values()))
        for _ in range(max(1, count)):
            at_s += rng.expovariate(rate)
            drawn.append((at_s, name))
    return sorted(drawn)


class Log:
    """The batches that an endpoint has computed, and the models that it has loaded."""

    def __init__(self, folder):
        """Begin an empty one; models are files in a folder."""
        torch.set_num_threads(1)
        self.folder = Path(folder)
        self.sizes, self.loads, self.load_s, self.compute_s = [], 0, 0.0, 0.0

    def load(self, name):
        """Load a model, and count it."""
        begun_s = time.perf_counter()
        model = load(self.folder / name)
        self.loads += 1
        self.load_s += time.perf_counter() - begun_s
        return model

    def compute(self, model, count):
        """Compute a batch, and note it."""
        begun_s = time.perf_counter()
        results = compute(model, count)
        self.sizes.append(count)
        self.compute_s += time.perf_counter() - begun_s
        return results

    def taken(self):
        """Give what was noted, and begin anew."""
        noted = {
            "sizes": self.sizes,
            "compute_s": self.compute_s,
            "loads": self.loads,
            "load_s": self.load_s,
        }
        self.sizes, self.loads, self.load_s, self.compute_s = [], 0, 0.0, 0.0
        return noted


def by_ray(folder, server, wait_s, on_thread=False, ongoing=1000):
    """Give an endpoint that batches and multiplexes as Ray Serve does.

    Args:
        folder: with the models' files.
        server: as `batch` is given it.
        wait_s: `batch_wait_timeout_s`.
        on_thread: whether batches are computed beside the endpoint's event loop.
        ongoing: `max_ongoing_requests`; Ray's own default is 5.
    """

    @serve.deployment(max_ongoing_requests=ongoing, ray_actor_options=resources())
    class Endpoint:
        def __init__(self):
            self.log = Log(folder)

        @serve.multiplexed(max_num_models_per_replica=server["slots"])
        async def model(self, name):
            return self.log.load(name)

        @serve.batch(max_batch_size=server["most_batch"], batch_wait_timeout_s=wait_s)
        async def answers(self, requests):
            model = await self.model(serve.get_multiplexed_model_id())
            if on_thread:
                return await asyncio.to_thread(self.log.compute, model, len(requests))
            return self.log.compute(model, len(requests))

        async def __call__(self, name):
            return await self.answers(name)

        async def taken(self):
            return self.log.taken()

    return Endpoint.bind()


def by_you(folder, server, source):
    """Give an endpoint that asks a lab's `batch` what is computed next."""

    @serve.deployment(max_ongoing_requests=1000, ray_actor_options=resources())
    class Endpoint:
        def __init__(self):
            self.log, self.models, self.task = Log(folder), {}, None
            answers = {"__name__": "answers"}
            exec(source, answers)
            self.batch = answers["batch"]
            self.waiting = {name: [] for name in server["models"]}
            self.begun_s, self.has_come = time.perf_counter(), asyncio.Event()

        async def __call__(self, name):
            at_s = time.perf_counter() - self.begun_s
            answer = asyncio.get_running_loop().create_future()
            self.waiting[name].append((at_s, answer))
            self.has_come.set()
            if self.task is None or self.task.done():
                self.task = asyncio.create_task(self.work())
            return await answer

        async def work(self):
            try:
                await self.compute_all()
            except Exception as problem:  # noqa: BLE001 - told to whoever waits
                for requests in self.waiting.values():
                    for _, answer in requests:
                        if not answer.done():
                            answer.set_exception(problem)
                    requests.clear()

        async def compute_all(self):
            while any(self.waiting.values()):
                state = {
                    "now_s": time.perf_counter() - self.begun_s,
                    "loaded": list(self.models),
                    "waiting": {
                        name: [at_s for at_s, _ in requests]
                        for name, requests in self.waiting.items()
                    },
                }
                [(name, count)] = self.batch(server, state).items()
                if name == WAIT:
                    self.has_come.clear()
                    await asyncio.wait([self.until_one_comes()], timeout=count / 1e3)
                    continue
                requests = self.waiting[name][:count]
                answers = await asyncio.to_thread(self.computed, name, len(requests))
                del self.waiting[name][: len(requests)]
                for (_, answer), number in zip(requests, answers, strict=True):
                    answer.set_result(number)

        def until_one_comes(self):
            return asyncio.ensure_future(self.has_come.wait())

        def computed(self, name, count):
            if name not in self.models and len(self.models) == server["slots"]:
                self.models.pop(next(iter(self.models)))
            model = self.models.pop(name, None) or self.log.load(name)
            self.models[name] = model
            return self.log.compute(model, count)

        async def taken(self):
            return self.log.taken()

    return Endpoint.bind()


def resources():
    """Give what an endpoint takes of the cluster."""
    return {"num_cpus": 1, "num_gpus": int(torch.cuda.is_available())}


def replay(endpoint, server, requests, multiplexed):
    """Start an endpoint, send it requests at their times, and stop it.

    Returns:
        A row of the table; latencies are from when a request was due to be sent.
    """
    handle = serve.run(endpoint, name=APPLICATION, route_prefix=None)

    def sent(name):
        if multiplexed:
            return handle.options(multiplexed_model_id=name).remote(name)
        return handle.remote(name)

    async def run():
        # processes and models that are there are not what is compared
        for name in list(server["models"])[-server["slots"] :]:
            await sent(name)
        await handle.taken.remote()
        begun_s = time.perf_counter() + 0.1

        async def request(at_s, name):
            await asyncio.sleep(begun_s + at_s - time.perf_counter())
            await sent(name)
            return name, time.perf_counter() - begun_s - at_s

        latencies_s = await asyncio.gather(*(request(*one) for one in requests))
        whole_s = time.perf_counter() - begun_s
        return latencies_s, whole_s, await handle.taken.remote()

    try:
        latencies_s, whole_s, noted = asyncio.run(run())
    finally:
        serve.delete(APPLICATION)
    return row(latencies_s, whole_s, server["slo_s"], noted)


def row(latencies_s, whole_s, slo_s, noted):
    """Give what a run came to; latencies are pairs of a model's name and seconds."""
    every_s = sorted(latency_s for _, latency_s in latencies_s)
    late = {}
    for name in sorted({name for name, _ in latencies_s}):
        own_s = [latency_s for model, latency_s in latencies_s if model == name]
        late[name] = sum(latency_s > slo_s for latency_s in own_s) / len(own_s)
    return {
        "p50_s": every_s[math.ceil(0.5 * len(every_s)) - 1],
        "p99_s": every_s[math.ceil(0.99 * len(every_s)) - 1],
        "late": max(late.values()),
        "per_second": len(every_s) / whole_s,
        "batch": statistics.mean(noted["sizes"]),
        **noted,
    }


def start():
    """Start Ray on this machine, or join the cluster of `RAY_ADDRESS`."""
    if not ray.is_initialized():
        here = {} if "RAY_ADDRESS" in os.environ else HERE
        ray.init(**here, log_to_driver=False)


def measure(source="answers.py", models=4, slots=2, load=0.5, requests=400):
    """Run your `batch` and Ray's on one trace of several models, one after the other.

    Args:
        source: the file with `batch`.
        models: how many there are; each is asked for half as often as the one before.
        slots: models that are in memory at a time.
        load: of what full batches without loads could do, the part that comes.
        requests: how many come.

    Returns:
        `server` as `batch` was given it, and a row of each endpoint by its name.
    """
    start()
    names = [f"m{number}" for number in range(models)]
    with tempfile.TemporaryDirectory() as folder:
        write_models(names, folder)
        model = service_times(Path(folder) / names[0])
        largest_s = model["fixed_s"] + 32 * model["item_s"]
        server = {
            "slo_s": 6 * model["load_s"]
            + 4 * (model["fixed_s"] + 32 * model["item_s"]),
            "slots": slots,
            "most_batch": 32,
            "models": dict.fromkeys(names, model),
        }
        parts = [2.0**-place for place in range(models)]
        per_second = {
            name: load * 32 / largest_s * part / sum(parts)
            for name, part in zip(names, parts, strict=True)
        }
        drawn = arrivals(per_second, requests)
        text = Path(source).read_text()
        wait_s = model["fixed_s"] / 4
        rows = {
            "your batch": replay(by_you(folder, server, text), server, drawn, False),
            "@serve.batch": replay(by_ray(folder, server, wait_s), server, drawn, True),
        }
    serve.shutdown()
    return {"server": server, "rows": rows}


def table(measured):
    """Write a measurement as text: times in ms, and the worst model's late share."""
    server = measured["server"]
    model = next(iter(server["models"].values()))
    lines = [
        f"{device()}: fixed {1e3 * model['fixed_s']:.1f} ms, each request "
        f"{1e3 * model['item_s']:.2f} ms, a load {1e3 * model['load_s']:.0f} ms; "
        f"late after {1e3 * server['slo_s']:.0f} ms",
        f"{'':16}{'p50':>8}{'p99':>8}{'late, %':>9}{'per s':>8}{'batch':>7}"
        f"{'loads':>7}",
    ]
    for name, one in measured["rows"].items():
        lines.append(
            f"{name:16}{1e3 * one['p50_s']:8.0f}{1e3 * one['p99_s']:8.0f}"
            f"{100 * one['late']:9.1f}{one['per_second']:8.0f}{one['batch']:7.1f}"
            f"{one['loads']:7}"
        )
    return "\n".join(lines)
