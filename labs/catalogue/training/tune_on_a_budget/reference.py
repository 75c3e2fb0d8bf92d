"""Search by asynchronous successive halving, within a lease."""


def rungs(least_steps, most_steps, factor):
    steps = []
    while least_steps < most_steps:
        steps.append(least_steps)
        least_steps *= factor
    return [*steps, most_steps]


def halving_steps(trials, least_steps, most_steps, factor):
    total, before = 0, 0
    for rung in rungs(least_steps, most_steps, factor):
        total += trials * (rung - before)
        trials = max(1, trials // factor)
        before = rung
    return total


def promoted(trials, rung, factor):
    """Give a trial that waits at a rung and is among its best, or None."""
    losses = {}
    for trial in trials:
        for steps, loss in trial["reports"]:
            if steps == rung:
                losses[trial["name"]] = loss
    best = sorted(losses, key=losses.get)[: len(losses) // factor]
    for trial in trials:
        if trial["steps"] == rung and not trial["is_running"]:
            if trial["name"] in best:
                return trial
    return None


def search(cluster, state):
    trials = state["trials"]
    steps = rungs(cluster["least_steps"], cluster["most_steps"], cluster["factor"])

    def fits(trial, count):
        return state["now_s"] + count * trial["step_s"] <= cluster["ends_s"]

    if state["free_gpus"] > 0:
        # the highest rung first: whoever is far gets to the end
        for rung, following in reversed(list(zip(steps, steps[1:]))):
            trial = promoted(trials, rung, cluster["factor"])
            if trial and fits(trial, following - rung):
                return {trial["name"]: following - rung}
        for trial in trials:
            if not trial["steps"] and not trial["is_running"] and fits(trial, steps[0]):
                return {trial["name"]: steps[0]}
    if any(trial["is_running"] for trial in trials):
        return {}
    trained = [trial for trial in trials if trial["reports"]]
    best = min(trained, key=lambda trial: trial["reports"][-1][1])
    return {best["name"]: 0}
