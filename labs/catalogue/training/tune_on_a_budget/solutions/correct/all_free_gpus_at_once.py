# fills every free GPU in one decision, and keeps its rungs as lists of its own
arrived = {}
promoted = set()


def rungs(least_steps, most_steps, factor):
    if least_steps >= most_steps:
        return [most_steps]
    return [least_steps, *rungs(least_steps * factor, most_steps, factor)]


def halving_steps(trials, least_steps, most_steps, factor):
    ladder = rungs(least_steps, most_steps, factor)
    total = trials * ladder[0]
    for low, high in zip(ladder, ladder[1:]):
        trials = max(1, trials // factor)
        total += trials * (high - low)
    return total


def search(cluster, state):
    ladder = rungs(cluster["least_steps"], cluster["most_steps"], cluster["factor"])
    left_s = cluster["ends_s"] - state["now_s"]
    pool = {trial["name"]: trial for trial in state["trials"]}
    for name, trial in pool.items():
        for steps, loss in trial["reports"]:
            arrived.setdefault(steps, {})[name] = loss
    wishes = []
    for low, high in list(zip(ladder, ladder[1:]))[::-1]:
        at = arrived.get(low, {})
        ranked = sorted(at, key=at.get)[: len(at) // cluster["factor"]]
        wishes += [(name, low, high) for name in ranked]
    wishes += [(name, 0, ladder[0]) for name in pool]
    decision = {}
    for name, low, high in wishes:
        trial = pool[name]
        if len(decision) == state["free_gpus"]:
            break
        if trial["is_running"] or trial["steps"] != low or name in decision:
            continue
        if (high - low) * trial["step_s"] <= left_s:
            decision[name] = high - low
    if decision or any(trial["is_running"] for trial in pool.values()):
        return decision
    last = {name: one["reports"][-1][1] for name, one in pool.items() if one["steps"]}
    return {min(last, key=last.get): 0}
