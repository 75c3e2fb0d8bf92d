# An object for each plan, with properties that are computed from one another
from functools import cached_property


class Priced:
    def __init__(self, model, batch, plan):
        self.__dict__.update(model)
        self.__dict__.update(plan)
        self.batch = batch

    @cached_property
    def count(self):
        return self.batch // (self.data * self.micro_batch)

    @cached_property
    def tokens(self):
        return self.micro_batch * self.sequence

    @cached_property
    def depth(self):
        return self.layers // self.pipeline

    @cached_property
    def matrix(self):
        query = self.hidden * self.heads * self.head_size
        key = self.hidden * self.kv_heads * self.head_size
        return 2 * query + 2 * key + 3 * self.hidden * self.intermediate

    @cached_property
    def table(self):
        return self.vocabulary * self.hidden / self.tensor

    @cached_property
    def states(self):
        return 2 * self.tokens * self.hidden

    @cached_property
    def tokens_split(self):
        return self.tensor if self.sequence_parallel else 1

    @cached_property
    def of_layer(self):
        if self.recompute:
            return self.states / self.tokens_split
        whole = 4 * self.states + 8 * self.tokens
        core = 4 * (self.heads + self.kv_heads) * self.head_size
        core += 4 * self.heads
        core += 8 * self.intermediate
        return whole / self.tokens_split + self.tokens * core / self.tensor

    def flying(self, stage):
        later = self.pipeline - 1 - stage
        if self.chunks == 1:
            return min(later + 1, self.count)
        chunks = 2 * later + (self.chunks - 1) * self.pipeline + 1
        return min(chunks, self.count * self.chunks) / self.chunks

    def stage_bytes(self, stage):
        own = self.depth * (self.matrix / self.tensor + 2 * self.hidden)
        kept = self.depth * self.of_layer
        extra = 0
        if stage == 0:
            own += self.table
        if stage == self.pipeline - 1:
            own += self.table + self.hidden
            kept += 2 * self.states / self.tokens_split
            extra = 14 * self.tokens * self.vocabulary / self.tensor
        adam = 12 / self.data if self.sharded_optimizer else 12
        return own * (4 + adam) + kept * self.flying(stage) + extra

    @cached_property
    def memory(self):
        return max(map(self.stage_bytes, range(self.pipeline)))

    @cached_property
    def sent(self):
        ring = 2 * (self.tensor - 1) / self.tensor
        reduces = 2 * (3 if self.recompute else 2) * self.depth * self.count
        weights = self.depth * (self.matrix / self.tensor + 2 * self.hidden)
        hops = 2 * self.chunks * self.count if self.pipeline > 1 else 0
        return {
            "tensor": reduces * ring * self.states,
            "pipeline": hops * self.states / self.tokens_split,
            "data": 2 * (self.data - 1) / self.data * 2 * weights,
        }

    def on_link(self, cluster, kind, messages, neighbours):
        near = cluster["gpus_per_node"] % neighbours == 0
        link = "node" if near else "network"
        latency, rate = cluster[f"{link}_latency_s"], cluster[f"{link}_bytes_per_s"]
        return messages * latency + self.sent[kind] / rate

    def seconds(self, cluster):
        passes = 4 if self.recompute else 3
        square = 4 * self.tokens * self.sequence * self.heads * self.head_size
        flops = passes * self.depth * (2 * self.tokens * self.matrix + square)
        flops += 3 * 2 * self.tokens * self.hidden * self.vocabulary
        busy = self.count * flops / self.tensor / cluster["flops_per_s"]
        busy += self.count * passes * self.depth * cluster["layer_overhead_s"]
        rings = 2 * (passes - 1) * self.depth * self.count * 2 * (self.tensor - 1)
        busy += self.on_link(cluster, "tensor", rings, self.tensor)
        beside = self.tensor * self.data
        hops = 2 * self.chunks * self.count if self.pipeline > 1 else 0
        busy += self.on_link(cluster, "pipeline", hops, beside * self.pipeline)
        busy += busy * (self.pipeline - 1) / self.chunks / self.count
        return busy + self.on_link(cluster, "data", 2 * (self.data - 1), beside)


def bubble_share(stages, chunks, micro_batches):
    idle = (stages - 1) / chunks
    return idle / (idle + micro_batches)


def memory_bytes(model, batch, plan):
    return Priced(model, batch, plan).memory


def sent_bytes(model, batch, plan):
    return Priced(model, batch, plan).sent


def step_s(model, cluster, batch, plan):
    return Priced(model, batch, plan).seconds(cluster)


def powers(number):
    return [n for n in range(1, number + 1) if not number % n]


def plan(model, cluster, batch):
    best, least = None, float("inf")
    for tensor in powers(model["kv_heads"]):
        if model["intermediate"] % tensor or model["vocabulary"] % tensor:
            continue
        for pipeline in powers(model["layers"]):
            data, rest = divmod(cluster["gpus"], tensor * pipeline)
            if rest or not data or batch % data:
                continue
            for micro in powers(batch // data):
                count = batch // data // micro
                turns = pipeline > 1 and count % pipeline == 0
                for chunks in powers(model["layers"] // pipeline) if turns else [1]:
                    for again in 0, 1:
                        one = dict(tensor=tensor, pipeline=pipeline, data=data)
                        one.update(chunks=chunks, micro_batch=micro, recompute=again)
                        one["sequence_parallel"] = 1 if tensor > 1 else 0
                        one["sharded_optimizer"] = 1 if data > 1 else 0
                        priced = Priced(model, batch, one)
                        seconds = priced.seconds(cluster)
                        if seconds < least and priced.memory <= cluster["room_bytes"]:
                            best, least = one, seconds
    return best
