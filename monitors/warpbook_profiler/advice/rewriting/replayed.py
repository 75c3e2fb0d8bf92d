"""What an edited cell calls to replay turns of a loop."""

#: a turn that is given something else than tensors of one form must not be replayed
REPLAYED = '''\
@{contextlib}.contextmanager
def {name}(turn, many, stepping=None):
    """Call `turn` as a CUDA graph: its first `many` results are its next arguments."""
    tree, cuda = {torch}.utils._pytree, {torch}.cuda
    same = graph = held = made = form = carried = None

    def is_tensor(one):
        return isinstance(one, {torch}.Tensor)

    def memory_of(one):
        return one.untyped_storage().data_ptr() if is_tensor(one) else None

    def own(one):
        if not is_tensor(one):
            return one
        if one.grad_fn is not None:
            raise TypeError("autograd goes on from one turn to the next")
        return one.detach().clone().requires_grad_(one.requires_grad)

    def put(places, values):
        for place, one in zip(places, values, strict=True):
            if place is one:
                continue
            if is_tensor(place) and place.shape == one.shape:
                with {torch}.no_grad():
                    place.copy_(one)
            elif is_tensor(place) or is_tensor(one) or place != one:
                raise TypeError("turns are given values of other kinds")

    def call(*given):
        nonlocal same, graph, held, made, form, carried
        flat, shape = tree.tree_flatten(given)
        if same is None:
            # what is set up only once is no part of a graph
            stream, current = cuda.Stream(), cuda.current_stream()
            stream.wait_stream(current)
            with cuda.stream(stream):
                result = turn(*given)
            current.wait_stream(stream)
            after = tree.tree_leaves(result[:many])
            # what a turn changes in place stays the tensor that it is
            same = [one is other for one, other in zip(flat, after)]
            return result
        if graph is None:
            if stepping is not None:
                stack.enter_context(stepping)
            carried = len(tree.tree_leaves(given[:many]))
            stays = same + [False] * len(flat)
            held = [one if stay else own(one) for one, stay in zip(flat, stays)]
            memory, graph = {{*map(memory_of, held)}} - {{None}}, cuda.CUDAGraph()
            with {torch}.cuda.graph(graph):
                made, form = tree.tree_flatten(turn(*tree.tree_unflatten(held, shape)))
                for at, one in enumerate(made):
                    is_place = at < carried and one is held[at]
                    needs_grad = is_tensor(one) and one.grad_fn is not None
                    # the next turn writes to it
                    if needs_grad or memory_of(one) in memory and not is_place:
                        made[at] = own(one)
                put(held[:carried], made[:carried])
        put(held, flat)
        graph.replay()
        return tree.tree_unflatten([*held[:carried], *map(own, made[carried:])], form)

    with {contextlib}.ExitStack() as stack:
        yield call

'''
#: those of Adam's kind count on the host, which no replay does
STEPPING = '''\
@{contextlib}.contextmanager
def {name}(*given):
    """Have optimizers count their steps on the GPU meanwhile."""
    held = [part for one in given for part in getattr(one, "__dict__", {{}}).values()]
    kind = {torch}.optim.Optimizer
    found = {{id(one): one for one in [*given, *held] if isinstance(one, kind)}}
    pairs = [(one.state, group) for one in found.values() for group in one.param_groups]
    pairs = [pair for pair in pairs if pair[1].get("capturable") is False]
    states = [all_[p] for all_, group in pairs for p in group["params"] if p in all_]
    states = [one for one in states if isinstance(one.get("step"), {torch}.Tensor)]
    states = [one for one in states if one["step"].device.type == "cpu"]

    def move(device):
        if states:
            steps = {torch}.stack([one["step"] for one in states]).to(device)
            for state, step in zip(states, steps):
                state["step"] = step.clone()

    move("cuda")
    for _, group in pairs:
        group["capturable"] = True
    try:
        yield
    finally:
        for _, group in pairs:
            group["capturable"] = False
        move("cpu")

'''
