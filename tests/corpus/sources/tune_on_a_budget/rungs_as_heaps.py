# Rungs are heaps of losses, and a generator proposes runs in the order of their worth
import heapq
import itertools

heaps = {}
counted = set()


def ladder(least, factor):
    return itertools.accumulate(
        itertools.repeat(factor), lambda now, by: now * by, initial=least
    )


def rungs(least_steps, most_steps, factor):
    below = itertools.takewhile(
        lambda now: now < most_steps, ladder(least_steps, factor)
    )
    return list(below) + [most_steps]


def halving_steps(trials, least_steps, most_steps, factor):
    tops = rungs(least_steps, most_steps, factor)
    total = 0
    for place, (low, high) in enumerate(zip([0] + tops, tops)):
        total += max(1, trials // factor**place) * (high - low)
    return total


def note(trials):
    for trial in trials:
        for steps, loss in trial["reports"]:
            if (trial["name"], steps) not in counted:
                counted.add((trial["name"], steps))
                heapq.heappush(heaps.setdefault(steps, []), (loss, trial["name"]))


def proposals(cluster, trials):
    tops = rungs(cluster["least_steps"], cluster["most_steps"], cluster["factor"])
    for place in range(len(tops) - 2, -1, -1):
        heap = heaps.get(tops[place], [])
        count = len(heap) // cluster["factor"]
        names = {name for _, name in heapq.nsmallest(count, heap)}
        for trial in trials:
            if trial["name"] in names and trial["steps"] == tops[place]:
                yield trial, tops[place + 1] - tops[place]
    for trial in trials:
        if trial["steps"] == 0:
            yield trial, tops[0]


def search(cluster, state):
    note(state["trials"])
    waiting = [trial for trial in state["trials"] if not trial["is_running"]]
    for trial, steps in proposals(cluster, waiting):
        over_s = state["now_s"] + steps * trial["step_s"] - cluster["ends_s"]
        if over_s <= 0:
            return {trial["name"]: steps}
    if len(waiting) < len(state["trials"]):
        return {}
    _, name = min(
        (one["reports"][-1][1], one["name"]) for one in waiting if one["steps"]
    )
    return {name: 0}
