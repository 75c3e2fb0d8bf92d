# its own rungs, four times as far each, and the best quarter goes on
LADDER = [5, 20, 80, 405]


def rungs(least_steps, most_steps, factor):
    steps, here = [], least_steps
    while here < most_steps:
        steps.append(here)
        here *= factor
    steps.append(most_steps)
    return steps


def halving_steps(trials, least_steps, most_steps, factor):
    before, total = 0, 0
    for rung in rungs(least_steps, most_steps, factor):
        total += trials * (rung - before)
        before, trials = rung, trials // factor or 1
    return total


def search(cluster, state):
    trials = state["trials"]
    idle = [trial for trial in trials if not trial["is_running"]]

    def begins(trial, target):
        steps = target - trial["steps"]
        ends_s = state["now_s"] + steps * trial["step_s"]
        return {trial["name"]: steps} if ends_s <= cluster["ends_s"] else None

    for place in (2, 1, 0):
        rung = LADDER[place]
        losses = sorted(
            dict(map(tuple, trial["reports"]))[rung]
            for trial in trials
            if rung in dict(map(tuple, trial["reports"]))
        )
        count = len(losses) // 4
        for trial in idle:
            if trial["steps"] == rung and trial["reports"][-1][1] in losses[:count]:
                decision = begins(trial, LADDER[place + 1])
                if decision:
                    return decision
    for trial in idle:
        if trial["steps"] == 0:
            decision = begins(trial, LADDER[0])
            if decision:
                return decision
    if len(idle) < len(trials):
        return {}
    seen = [trial for trial in idle if trial["reports"]]
    return {min(seen, key=lambda trial: trial["reports"][-1][1])["name"]: 0}
