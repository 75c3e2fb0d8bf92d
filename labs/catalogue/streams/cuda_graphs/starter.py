from given import make_weights, step


def prepare(samples, rows, width, layers):
    # Called once, and not timed. What you return here is handed to run.
    return {"weights": make_weights(layers, width), "rows": rows}


def run(state, x, begin, out):
    x = x[begin : begin + out.shape[0]]
    rows = state["rows"]
    # The numbers are right, but the host launches each tiny kernel by itself.
    # x.split gives whole batches, and at the end what is left.
    for batch, result in zip(x.split(rows), out.split(rows)):
        step(batch, state["weights"], result)
