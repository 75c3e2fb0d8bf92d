"""Your search, and Ray Tune's, on real trainings: a GPU each, or a core without GPUs.

A trial trains a small network on data that is drawn. Batches are drawn by the step, so
that a trial's curve is the same whoever runs it. Nothing here is graded.
"""

import io
import math
import os
import random
import runpy
import statistics
import sys
import tempfile
import time

import torch
from torch.nn import Linear, ReLU, Sequential, functional

try:
    import ray
    from ray import tune
    from ray.tune.schedulers import ASHAScheduler, FIFOScheduler
except ModuleNotFoundError as problem:
    raise ModuleNotFoundError(
        f"{problem}: pip install 'warpbook-labs[ray]'. Nothing that is graded needs it."
    ) from None

TRIALS, WHOLE_TRAININGS = 162, 10
RUNGS = {"least_steps": 5, "most_steps": 405, "factor": 3}
WIDTHS = (16, 32, 64, 128)
INPUTS, CLASSES, BATCH, BATCHES_PER_STEP = 32, 10, 256, 5
#: examples to learn from, to decide by, and that no decision has seen
PARTS = {"train": 65536, "validation": 1024, "test": 8192}

#: of a process, once it has drawn them
DRAWN = {}
#: what starts a Ray of this machine alone
HERE = {"address": "local", "include_dashboard": False}

# workers are handed this module's functions, and need not find the file
ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])


def pool(trials=TRIALS, seed=27):
    """Draw a pool of trials: a learning rate, a width and a seed each."""
    rng = random.Random(seed)
    return [
        {
            "name": f"t{place}",
            "learning_rate": 10 ** rng.uniform(-4.5, -1.5),
            "width": rng.choice(WIDTHS),
            "seed": rng.getrandbits(31),
        }
        for place in range(trials)
    ]


def examples():
    """Give the examples of each part, drawn once: what a larger network says."""
    if DRAWN:
        return DRAWN
    numbers = torch.Generator().manual_seed(1)
    size = (256, INPUTS)
    hidden = torch.randn(size, generator=numbers) / math.sqrt(INPUTS)
    teacher = torch.randn(CLASSES, 256, generator=numbers)
    for part, count in PARTS.items():
        x = torch.randn(count, INPUTS, generator=numbers)
        DRAWN[part] = x, (torch.relu(x @ hidden.T) @ teacher.T).argmax(1)
    return DRAWN


class Training:
    """One trial as it is trained by now, on this process's GPU or core."""

    def __init__(self, trial, checkpoint=None):
        """Begin a trial, or go on from a checkpoint."""
        torch.set_num_threads(1)
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        self.trial, self.steps = trial, 0
        self.parts = {
            part: tuple(data.to(self.device) for data in both)
            for part, both in examples().items()
        }
        torch.manual_seed(trial["seed"])
        width = trial["width"]
        layers = [Linear(INPUTS, width), ReLU(), Linear(width, width), ReLU()]
        self.model = Sequential(*layers, Linear(width, CLASSES)).to(self.device)
        self.optimizer = torch.optim.Adam(
            self.model.parameters(), trial["learning_rate"]
        )
        if checkpoint:
            self.steps, model, optimizer = torch.load(io.BytesIO(checkpoint))
            self.model.load_state_dict(model)
            self.optimizer.load_state_dict(optimizer)

    def train(self, steps):
        """Train so many steps, of some batches each."""
        x, y = self.parts["train"]
        for _ in range(steps):
            numbers = torch.Generator().manual_seed(self.steps)
            for _ in range(BATCHES_PER_STEP):
                chosen = torch.randint(len(x), (BATCH,), generator=numbers)
                chosen = chosen.to(self.device)
                self.optimizer.zero_grad()
                functional.cross_entropy(self.model(x[chosen]), y[chosen]).backward()
                self.optimizer.step()
            self.steps += 1

    @torch.inference_mode()
    def loss(self, part):
        """Give the mean loss of a part."""
        x, y = self.parts[part]
        return functional.cross_entropy(self.model(x), y).item()

    def checkpoint(self):
        """Give the bytes from which another process goes on."""
        saved = io.BytesIO()
        torch.save(
            (self.steps, self.model.state_dict(), self.optimizer.state_dict()), saved
        )
        return saved.getvalue()


@ray.remote
class Slot:
    """A process with a GPU, or with a core: it trains one run after another."""

    def step_s(self):
        """Time a step of each width, after one that warms up."""
        times_s = {}
        for width in WIDTHS:
            trial = {"learning_rate": 1e-3, "width": width, "seed": 0}
            training = Training(trial)
            training.train(2)
            begun_s = time.perf_counter()
            training.train(5)
            training.loss("validation")
            times_s[width] = (time.perf_counter() - begun_s) / 5
        return times_s

    def run(self, trial, checkpoint, steps):
        """Train steps from a checkpoint.

        Returns:
            The next checkpoint, the losses of validation and test, and the seconds.
        """
        begun_s = time.perf_counter()
        training = Training(trial, checkpoint)
        training.train(steps)
        losses = training.loss("validation"), training.loss("test")
        return training.checkpoint(), *losses, time.perf_counter() - begun_s


def slot_resources():
    """Give what a slot takes of the cluster, and how many slots there are."""
    kind = "GPU" if ray.cluster_resources().get("GPU") else "CPU"
    count = int(ray.cluster_resources()[kind])
    return {f"num_{kind.lower()}s": 1}, count


def begin_slots():
    """Start a process for each GPU or core, and wait until all of them answer.

    Returns:
        The slots, the seconds of a step by width, and those until all were there.
    """
    begun_s = time.perf_counter()
    resources, count = slot_resources()
    slots = [Slot.options(**resources).remote() for _ in range(count)]
    ray.get([slot.__ray_ready__.remote() for slot in slots])
    start_s = time.perf_counter() - begun_s
    measured = ray.get([slot.step_s.remote() for slot in slots])
    step_s = {
        width: statistics.mean(times_s[width] for times_s in measured)
        for width in WIDTHS
    }
    return slots, step_s, start_s


def lease(trials, step_s, slots):
    """Give the cluster as a search sees it: ten whole trainings fit into its lease."""
    whole_s = RUNGS["most_steps"] * statistics.mean(
        step_s[trial["width"]] for trial in trials
    )
    return {"gpus": slots, "ends_s": WHOLE_TRAININGS * whole_s / slots, **RUNGS}


def search_by(search, trials, slots, step_s, start_s, cluster):
    """Run a search of the lab on slots that are there, until it keeps a trial.

    Args:
        search: of `answers.py`, one that the lab's own check accepts.
        trials: of `pool`.
        slots: of `begin_slots`, as the next two.
        step_s: the seconds of a step by width.
        start_s: the seconds that the slots were held before the lease began.
        cluster: of `lease`.

    Returns:
        A row of the table, as `row` has it.

    Raises:
        ValueError: it waits, and there is nothing to wait for.
    """
    known = {
        trial["name"]: {
            "name": trial["name"],
            "learning_rate": trial["learning_rate"],
            "step_s": step_s[trial["width"]],
            "steps": 0,
            "is_running": False,
            "reports": [],
        }
        for trial in trials
    }
    by_name = {trial["name"]: trial for trial in trials}
    checkpoints, tests, running, free = {}, {}, {}, list(slots)
    begun_s, trained_s = time.perf_counter(), 0.0
    while True:
        state = {
            "now_s": time.perf_counter() - begun_s,
            "free_gpus": len(free),
            "trials": list(known.values()),
        }
        decision = search(cluster, state) if free else {}
        if 0 in decision.values():
            wall_s = start_s + time.perf_counter() - begun_s
            [kept] = decision
            steps = {name: trial["steps"] for name, trial in known.items()}
            return row(kept, tests[kept], steps, len(slots) * wall_s, trained_s)
        for name, steps in decision.items():
            slot = free.pop()
            result = slot.run.remote(by_name[name], checkpoints.get(name), steps)
            running[result] = name, steps, slot
            known[name]["is_running"] = True
        if decision and free:
            continue
        if not running:
            raise ValueError("Your search begins nothing while nothing runs.")
        [done], _ = ray.wait(list(running))
        name, steps, slot = running.pop(done)
        checkpoints[name], loss, tests[name], run_s = ray.get(done)
        trained_s += run_s
        free.append(slot)
        trial = known[name]
        trial["steps"] += steps
        trial["is_running"] = False
        trial["reports"].append([trial["steps"], loss])


def row(kept, test_loss, steps, held_s, trained_s):
    """Give what a search came to; `steps` has those of each trial by name."""
    return {
        "kept": kept,
        "kept_steps": steps[kept],
        "test_loss": test_loss,
        "begun": sum(count > 0 for count in steps.values()),
        "steps": sum(steps.values()),
        "held_s": held_s,
        "trained_s": trained_s,
    }


def rungs():
    """Give the steps after which trials report."""
    steps = [RUNGS["least_steps"]]
    while steps[-1] * RUNGS["factor"] < RUNGS["most_steps"]:
        steps.append(steps[-1] * RUNGS["factor"])
    return [*steps, RUNGS["most_steps"]]


def train(config):
    """Train a trial of Ray Tune to the end, or until its scheduler stops it."""
    begun_s, spent_s = time.perf_counter(), 0.0
    training = Training(config["trial"])
    for steps in rungs():
        training.train(steps - training.steps)
        loss, test_loss = training.loss("validation"), training.loss("test")
        spent_s += time.perf_counter() - begun_s
        tune.report(
            {
                "steps": steps,
                "loss": loss,
                "test_loss": test_loss,
                "trained_s": spent_s,
            }
        )
        begun_s = time.perf_counter()


class LeaseIsOver(tune.Stopper):
    """Ends a search of Ray Tune so many seconds after its first trial began."""

    def __init__(self, ends_s):
        """Wait for the first report."""
        self.ends_s, self.begun_s = ends_s, None

    def __call__(self, trial_id, result):
        """Note when the first trial began; no trial is stopped for itself."""
        if self.begun_s is None:
            self.begun_s = time.monotonic() - result["trained_s"]
        return False

    def stop_all(self):
        """Tell whether the lease is over."""
        is_known = self.begun_s is not None
        return is_known and time.monotonic() - self.begun_s > self.ends_s


def search_by_tune(trials, ends_s, early_stopping=True):
    """Search by Ray Tune: ASHA, or each trial to the end, within a lease.

    Args:
        trials: of `pool`, begun in their order.
        ends_s: the seconds after which nothing is trained, from the first trial on.
        early_stopping: whether ASHA stops trials at rungs.

    Returns:
        A row of the table, as `row` has it.
    """
    resources, slots = slot_resources()
    kinds = {"num_gpus": "gpu", "num_cpus": "cpu"}
    asha = ASHAScheduler(
        time_attr="steps",
        grace_period=RUNGS["least_steps"],
        max_t=RUNGS["most_steps"],
        reduction_factor=RUNGS["factor"],
    )
    begun_s = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        tuner = tune.Tuner(
            tune.with_resources(
                train, {kinds[name]: count for name, count in resources.items()}
            ),
            param_space={"trial": tune.grid_search(trials)},
            tune_config=tune.TuneConfig(
                metric="loss",
                mode="min",
                scheduler=asha if early_stopping else FIFOScheduler(),
                reuse_actors=True,
            ),
            run_config=tune.RunConfig(
                storage_path=folder, verbose=0, stop=LeaseIsOver(ends_s)
            ),
        )
        results = tuner.fit()
    wall_s = time.perf_counter() - begun_s
    reported = [result for result in results if result.metrics.get("steps")]
    steps = {
        result.config["trial"]["name"]: result.metrics["steps"] for result in reported
    }
    best = results.get_best_result()
    trained_s = sum(result.metrics["trained_s"] for result in reported)
    name, loss = best.config["trial"]["name"], best.metrics["test_loss"]
    return row(name, loss, steps, slots * wall_s, trained_s)


def start():
    """Start Ray on this machine, or join the cluster of `RAY_ADDRESS`."""
    if not ray.is_initialized():
        here = {} if "RAY_ADDRESS" in os.environ else HERE
        ray.init(**here, log_to_driver=False)


def measure(source="answers.py", trials=TRIALS):
    """Run your search, Ray Tune's ASHA and random search, one after the other.

    Returns:
        `ends_s` of the lease, and a row of each search by its name.
    """
    search = runpy.run_path(source)["search"]
    start()
    chosen = pool(trials)
    slots, step_s, start_s = begin_slots()
    try:
        cluster = lease(chosen, step_s, len(slots))
        yours = search_by(search, chosen, slots, step_s, start_s, cluster)
    finally:
        # their processes would hold what Tune's need, and what a next call needs
        for slot in slots:
            ray.kill(slot)
    ends_s = cluster["ends_s"]
    rows = {
        "your search": yours,
        "ASHA of Ray Tune": search_by_tune(chosen, ends_s),
        "each to the end": search_by_tune(chosen, ends_s, early_stopping=False),
    }
    return {"slots": len(slots), "ends_s": cluster["ends_s"], "rows": rows}


def table(measured):
    """Write a measurement as text: losses, and the seconds of all GPUs or cores."""
    slots, ends_s = measured["slots"], measured["ends_s"]
    lines = [
        f"{slots} slots, a lease of {ends_s:.0f} s",
        f"{'':18}{'kept':>6}{'steps':>7}{'test loss':>11}{'begun':>7}{'all steps':>11}"
        f"{'held, s':>9}{'trained, s':>12}{'wasted, s':>11}",
    ]
    for name, one in measured["rows"].items():
        wasted_s = one["held_s"] - one["trained_s"]
        lines.append(
            f"{name:18}{one['kept']:>6}{one['kept_steps']:7}{one['test_loss']:11.3f}"
            f"{one['begun']:7}{one['steps']:11}{one['held_s']:9.1f}"
            f"{one['trained_s']:12.1f}{wasted_s:11.1f}"
        )
    return "\n".join(lines)
