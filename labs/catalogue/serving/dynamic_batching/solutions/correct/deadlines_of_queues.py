# the earliest deadline first; what is not loaded has one that is earlier by its load
import math


def least_batch(model, per_second):
    count_per_item = model["item_s"] * per_second
    if count_per_item >= 1:
        return 0
    return math.ceil(model["fixed_s"] * per_second / (1 - count_per_item))


class Queue:
    def __init__(self, name, server, state):
        self.name, self.times = name, state["waiting"][name]
        self.model = server["models"][name]
        self.is_loaded = name in state["loaded"]
        self.count = min(len(self.times), server["most_batch"])
        self.due_s = self.times[0] + server["slo_s"] - self.takes_s()

    def takes_s(self):
        load_s = 0.0 if self.is_loaded else self.model["load_s"]
        return load_s + self.model["fixed_s"] + self.count * self.model["item_s"]

    def may_wait(self, now_s):
        return not self.is_loaded and self.due_s - now_s > 1.5 * self.model["load_s"]


def batch(server, state):
    queues = [Queue(name, server, state) for name, at in state["waiting"].items() if at]
    queues.sort(key=lambda queue: queue.due_s)
    for queue in queues:
        if not queue.may_wait(state["now_s"]):
            return {queue.name: queue.count}
    return {queues[0].name: queues[0].count}
