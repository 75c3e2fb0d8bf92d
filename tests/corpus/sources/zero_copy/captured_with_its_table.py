# A graph gathers and scales, captured when a table is first seen and kept by its address.
import torch
from given import scaled, seen_by_gpu


def prepare(rows, picked, width):
    return {
        "which": torch.zeros(picked, dtype=torch.int64, device="cuda"),
        "result": torch.empty(picked, width, device="cuda"),
        "graphs": {},
    }


def captured(state, table):
    graph, seen = torch.cuda.CUDAGraph(), seen_by_gpu(table)
    with torch.cuda.graph(graph):
        rows = seen.index_select(0, state["which"])
        scaled(rows, state["result"])
    # what it reads must live as long as the graph
    return graph, seen


def run(state, table, which, out):
    state["which"].copy_(which)
    graphs, address = state["graphs"], table.data_ptr()
    if address not in graphs:
        graphs[address] = captured(state, table)
    graphs[address][0].replay()
    out.copy_(state["result"])
