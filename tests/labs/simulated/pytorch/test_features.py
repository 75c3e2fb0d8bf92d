"""What PyTorch can do, a GPU's tensors can: recorded, and judged with other numbers."""

from __future__ import annotations

import textwrap
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch

from tests.labs.simulated.learner_file import judged_file, left_of, program_of

N = 8
HEAD = """
import contextlib, copy, io, itertools
import torch
from torch import nn
from torch.nn import functional as F


def fixed(module):
    for each in module.parameters():
        numbers = torch.linspace(-1, 1, each.numel(), device=each.device)
        each.data.copy_(numbers.view(each.shape))
    return module


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 2

    @staticmethod
    def backward(ctx, slopes):
        (x,) = ctx.saved_tensors
        return slopes * x


def trained(x, kind, **options):
    device = x.device.type
    layer = fixed(nn.Linear(8, 8)).to(device)
    optimizer = kind(layer.parameters(), **options)
    for _ in range(3):
        optimizer.zero_grad()
        layer(x).square().mean().backward()
        optimizer.step()
    return layer.weight


def scaled(x, dtype):
    device = x.device.type
    layer = fixed(nn.Sequential(nn.Linear(8, 8), nn.LayerNorm(8))).to(device)
    optimizer = torch.optim.AdamW(layer.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler(device, init_scale=4.0, enabled=False)
    with torch.autocast(device, dtype=dtype):
        loss = F.mse_loss(layer(x).float(), torch.zeros_like(x))
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(layer.parameters(), 0.5)
    scaler.step(optimizer)
    scaler.update()
    return layer[0].weight


def sloped(x, function):
    leaf = x.detach().clone().requires_grad_()
    function(leaf).sum().backward()
    return leaf.grad


def feature(x):
"""
RUN = """

def prepare(n):
    return None


def run(state, x, out):
    y = feature(x).detach().float().reshape(-1)
    out.zero_()
    out.view(-1)[: len(y)].copy_(y)
"""
IDLE = """    return x


def prepare():
    return None


def run(state, x):
"""
#: bodies that give a tensor made of x, which is (8, 8)
FEATURES = {
    "arithmetic": "return (x * 2 + 1) / 3 - x ** 2 % 5",
    "whole numbers": "return (x * 10).to(torch.int64) // 3 + (x > 0).long()",
    "half": "return x.half() * x.half() + 0.1",
    "bfloat16": "return (x.bfloat16() @ x.bfloat16().t()).relu()",
    "float64": "return x.double().exp().log1p()",
    "FP8": "return x.to(torch.float8_e4m3fn).float() + 1",
    "functions": "return x.sin() + x.tanh().abs().sqrt() + torch.erf(x)",
    "comparisons": "return torch.where((x > 0) & (x < 1), x, -x)",
    "clamp and maximum": "return x.clamp(-0.5, 0.5).maximum(x.t())",
    "sums": "return x.sum(0) + x.mean(1) + x.amax() - x.amin(0)",
    "variance and norm": "return x.var(1) + x.std(0) + torch.linalg.norm(x)",
    "argmax": "return x.argmax(1) + x.min(0).indices",
    "cumulative": "return x.cumsum(1) + x.cumprod(0)",
    "sort and topk": "return x.sort(1).values + x.topk(8, 1).values",
    "products": "return x @ x + torch.addmm(x, x, x) + torch.einsum('ij,kj->ik', x, x)",
    "batches of products": "return torch.bmm(x.view(2, 4, 8), x.view(2, 8, 4))",
    "vectors": "return x @ x[0] + x[1].dot(x[2])",
    "views": "return x.t()[1:, ::2].unflatten(0, (7, 1)).permute(2, 1, 0) + 1",
    "shapes in place": "y = x * 1; y.t_(); y.unsqueeze_(0); return y.squeeze_(0) + 1",
    "resized": (
        "y = torch.empty(3, device=x.device); y.resize_(8).copy_(x[0]); return y"
    ),
    "an out that is made to fit": (
        "y = torch.empty(0, device=x.device); torch.mm(x, x, out=y); return y"
    ),
    "slices are written": (
        "y = x * 1; y[1:3] = 5.0; y[:, 2] += 1; y[0, 0] = x[1, 1]; return y"
    ),
    "index": "i = torch.tensor([3, 1, 1], device=x.device); return x[i] + x[:, i].t()",
    "an index of the host": "return x[torch.tensor([3, 1, 1])]",
    "index_put": (
        "y = x * 1; i = torch.arange(4, device=x.device); y[i, i] = 7.0; return y"
    ),
    "gather and scatter": (
        "i = x.argsort(1); return torch.zeros_like(x).scatter_(1, i, "
        "x.gather(1, i) * 2)"
    ),
    "index_add": (
        "i = torch.tensor([0, 0, 3], device=x.device); return x.index_add(0, i, x[:3])"
    ),
    "masked_fill": "return x.masked_fill(x > 0, 9.0)",
    "joined": "return torch.cat([x, x.t()])[:8] + torch.stack([x[0], x[1]]).sum(0)",
    "split": "a, b = x.chunk(2); c, *_ = x.split(3, 1); return a + b + c.sum()",
    "rolled and flipped": (
        "return x.roll(2, 1).flip(0) + torch.tril(x) + x.repeat(1, 1)"
    ),
    "padding": "return F.pad(x, (1, 1), value=2.0)[:, 1:9] + F.pad(x, (-1, 1))",
    "made like it": (
        "return x.new_full((8, 8), 3) + torch.ones_like(x) + torch.eye(8).to(x)"
    ),
    "ranges": "return torch.arange(8, device=x.device) + torch.linspace(0, 1, 8).to(x)",
    "softmax": "return x.softmax(1) + F.log_softmax(x, 0)",
    "softmax in half": "return torch.softmax(x.half(), 1, dtype=torch.float32)",
    "layers": "return F.gelu(F.layer_norm(x, (8,))) + F.silu(F.group_norm(x, 2))",
    "attention": (
        "y = x.view(1, 2, 4, 8); return F.scaled_dot_product_attention(y, y, y)"
    ),
    "losses": (
        "t = torch.arange(8, device=x.device); "
        "return F.cross_entropy(x, t) + F.mse_loss(x, x.t()) + "
        "F.smooth_l1_loss(x, x * 2)"
    ),
    "convolutions": (
        "y = x.view(1, 1, 8, 8); w = torch.ones(2, 1, 3, 3, device=x.device); "
        "return F.conv2d(y, w, torch.ones(2, device=x.device), padding=1).amax(1)"
    ),
    "convolutions in groups": (
        "y = x.view(1, 2, 4, 8); w = torch.ones(2, 1, 3, 3, device=x.device); "
        "return F.conv2d(y, w, padding=1, groups=2)"
    ),
    "pooling": "return F.max_pool2d(x.view(1, 1, 8, 8), 2) + F.avg_pool2d(x[None], 2)",
    "a module": (
        "return fixed(nn.Sequential(nn.Linear(8, 8), nn.ReLU())).to(x.device)(x)"
    ),
    "embedding": (
        "i = torch.arange(8, device=x.device) % 3; "
        "return nn.Embedding.from_pretrained(x)(i)"
    ),
    "a transformer's layer": (
        "m = fixed(nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, "
        "batch_first=True)); "
        "return m.to(x.device)(x[None])"
    ),
    "batch norm, trained": (
        "m = nn.BatchNorm1d(8).to(x.device); y = m(x); return y + m.running_mean"
    ),
    "backward": "return sloped(x, lambda y: (y @ y).tanh().softmax(1).square())",
    "backward of layers": (
        "return sloped(x, lambda y: F.layer_norm(F.gelu(y), (8,)).clamp(-1, 1) ** 3)"
    ),
    "backward of convolutions": (
        "w = torch.ones(1, 1, 3, 3, device=x.device); return sloped(x, "
        "lambda y: F.max_pool2d(F.conv2d(y.view(1, 1, 8, 8), w, padding=1).relu(), 2))"
    ),
    "gradients of convolutions, asked for": (
        "y = x.view(1, 1, 8, 8); w = torch.ones(1, 1, 3, 3, device=x.device); "
        "g = torch.nn.grad.conv2d_input(y.shape, w, y, padding=1); "
        "h = [t.bfloat16() for t in (y / 8, g / 8)]; "
        "return torch.nn.grad.conv2d_weight(h[0], w.shape, h[1], padding=1).float()"
    ),
    "backward of an index": (
        "i = torch.tensor([1, 1, 2], device=x.device); "
        "return sloped(x, lambda y: y[i] * 2 + F.embedding(i, y))"
    ),
    "a Function of Python's": "return sloped(x, Doubled.apply)",
    "twice backward": (
        "leaf = x.clone().requires_grad_(); "
        "(g,) = torch.autograd.grad((leaf ** 3).sum(), leaf, create_graph=True); "
        "return torch.autograd.grad(g.sum(), leaf)[0]"
    ),
    "torch.func": "return torch.func.grad(lambda y: (y * y).sum())(x)",
    "vmap with numbers of Python's": (
        "return torch.vmap(lambda row: row * (2 / row.abs().amax()))(x)"
    ),
    "checkpoint": (
        "from torch.utils.checkpoint import checkpoint\n"
        "return sloped(x, lambda y: checkpoint(torch.sin, y, use_reentrant=False))"
    ),
    "hooks": (
        "seen = []\n"
        "def double(y):\n"
        "    y.register_hook(lambda g: seen.append(g) or g * 2)\n"
        "    return y * 3\n"
        "return sloped(x, double) + len(seen)"
    ),
    "SGD": "return trained(x, torch.optim.SGD, lr=0.1, momentum=0.9)",
    "Adam": "return trained(x, torch.optim.Adam, lr=0.1)",
    "Adam, foreach": "return trained(x, torch.optim.Adam, lr=0.1, foreach=True)",
    "AdamW, fused": "return trained(x, torch.optim.AdamW, lr=0.1, fused=True)",
    "autocast to bfloat16": "return scaled(x, torch.bfloat16)",
    "a copy of a module": (
        "return copy.deepcopy(fixed(nn.Linear(8, 8)).to(x.device))(x)"
    ),
    "a default device": "with x.device:\n    return torch.ones(8) + x",
    "a compiler that compiles nothing": (
        "return torch.compile(lambda y: y * 2 + 1, backend='eager')(x)"
    ),
    "no gradients": (
        "with torch.no_grad(), torch.inference_mode():\n    return (x * 2).sum(0)"
    ),
}


def _plain(body: str, x: Any) -> Any:
    module = ModuleType("plain")
    exec(HEAD + textwrap.indent(body, "    "), module.__dict__)
    return module.feature(torch.from_numpy(x)).detach().float().reshape(-1).numpy()


@pytest.mark.parametrize("name", FEATURES)
def test_a_feature_is_recorded_and_computed_again(name: str) -> None:
    body = FEATURES[name]
    x = np.random.default_rng(5).standard_normal((N, N), np.float32)
    done = judged_file(HEAD + textwrap.indent(body, "    ") + RUN, [x], "device")
    right = _plain(body, x)
    assert not done.findings
    got = done.outputs[0]["out"].reshape(-1)[: right.size]
    is_narrow = any(word in body + name for word in ("half", "bfloat16"))
    # a GPU's convolutions are of TF32, unless it is told not to
    is_narrow = is_narrow or "conv2d" in body
    within = 2e-2 if is_narrow else 2e-5
    np.testing.assert_allclose(got, right, rtol=within, atol=within)


#: what only a GPU has, or what only Python sees: bodies that look for themselves
LOOKED_AT = {
    "where tensors are": """
        y = torch.ones(3).to("cuda")
        assert str(y.device) == "cuda:0" and y.is_cuda and y.get_device() == 0
        assert y.type() == "torch.cuda.FloatTensor" and type(y) is torch.Tensor
        assert torch.ones(2, device=0).device == torch.ones(2).cuda().device
        assert torch.tensor([1, 2], device="cuda").tolist() == [1, 2]
        assert torch.ones(2, device=torch.device("cuda")).to(0).is_cuda
    """,
    "views share memory": """
        y = torch.zeros(4, 3, device="cuda")
        assert y[2:].untyped_storage().data_ptr() == y.untyped_storage().data_ptr()
        assert y[1].data_ptr() - y.data_ptr() == 12 and y[:, 1]._base is y
    """,
    "parameters stay who they are": """
        layer = nn.Linear(2, 2)
        weight = layer.weight
        assert layer.to("cuda").weight is weight and weight.is_cuda
        assert isinstance(weight, nn.Parameter)
    """,
    "memory is counted": """
        y = torch.ones(100, device="cuda")
        held = torch.cuda.memory_allocated()
        z = y[1:]
        del y
        assert torch.cuda.memory_allocated() == held
        del z
        assert torch.cuda.memory_allocated() == held - 512
        assert torch.cuda.max_memory_allocated() == held
    """,
    "autograd lets go of memory": """
        w = torch.ones(256, device="cuda", requires_grad=True)
        z = (w * w).exp().sum()
        before = torch.cuda.memory_allocated()
        z.backward()
        assert torch.cuda.memory_allocated() < before + 1024
    """,
    "autocast has a GPU's lists": """
        with torch.autocast("cuda"):
            y = fixed(nn.Linear(8, 8).cuda())(x)
            assert y.dtype == torch.float16 and y.exp().dtype == torch.float32
            assert y.softmax(-1).dtype == F.mse_loss(y, y).dtype == torch.float32
        with torch.autocast("cuda", dtype=torch.bfloat16):
            assert (x @ x).dtype == torch.bfloat16
    """,
    "scales of gradients": """
        layer, scaler = nn.Linear(8, 8).cuda(), torch.amp.GradScaler("cuda")
        optimizer = torch.optim.AdamW(layer.parameters())
        with torch.autocast("cuda"):
            loss = layer(x).float().square().mean()
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(layer.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        assert scaler.get_scale() == 65536.0 and layer.weight.grad.is_cuda
    """,
    "pinned memory": """
        assert torch.ones(2).pin_memory().is_pinned() and not torch.ones(2).is_pinned()
        assert torch.empty(3, pin_memory=True).is_pinned()
        assert x.to("cpu", non_blocking=True).is_pinned() and not x.cpu().is_pinned()
    """,
    "graphs": """
        static, graph = torch.zeros(2, device="cuda"), torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            made = static * 2 + 1
        static.fill_(3)
        graph.replay()
        assert made.tolist() == [7, 7]
    """,
    "make_graphed_callables": """
        layer = nn.Linear(4, 4).cuda()
        graphed = torch.cuda.make_graphed_callables(layer, (torch.randn(2, 4).cuda(),))
        y = torch.randn(2, 4, device="cuda")
        z = graphed(y)
        z.sum().backward()
        assert z.is_cuda and layer.weight.grad is not None
    """,
    "streams and events": """
        side, event = torch.cuda.Stream(priority=-1), torch.cuda.Event()
        with torch.cuda.stream(side):
            y = x * 2
            event.record()
            assert torch.cuda.current_stream() == side
        event.wait()
        side.synchronize()
        torch.cuda.synchronize()
    """,
    "chance has seeds": """
        torch.manual_seed(3)
        y = torch.rand(5, device="cuda")
        torch.manual_seed(3)
        assert torch.equal(y, torch.rand(5, device="cuda"))
        generator = torch.Generator(device="cuda").manual_seed(1)
        assert torch.randn(2, generator=generator, device="cuda").is_cuda
        assert F.dropout(torch.ones(1000, device="cuda")).sum().item() > 500
        assert torch.randint(5, (3,), device="cuda").max() < 5
    """,
    "printing": """
        half = torch.ones(2, device="cuda", dtype=torch.half)
        assert repr(half) == "tensor([1., 1.], device='cuda:0', dtype=torch.float16)"
        grown = torch.ones(1, device="cuda", requires_grad=True) * 2
        assert "grad_fn=<MulBackward0>" in repr(grown)
        assert f"{torch.ones((), device='cuda'):.1f}" == "1.0"
    """,
    "numbers of Python": """
        y = torch.ones(2, device="cuda")
        assert bool(y[0]) and int(y[0]) == 1 and [float(n) for n in y] == [1, 1]
        assert len(y) == 2 and y.cpu().numpy().tolist() == [1, 1]
    """,
    "an 8-bit product": """
        eight = torch.ones(32, 32, device="cuda").to(torch.float8_e4m3fn)
        one = torch.ones((), device="cuda")
        made = torch._scaled_mm(
            eight, eight.t(), scale_a=one, scale_b=one, out_dtype=torch.bfloat16
        )
        assert made.dtype == torch.bfloat16 and made[0, 0].item() == 32
        whole = torch.ones(32, 32, dtype=torch.int8, device="cuda")
        assert torch._int_mm(whole, whole)[0, 0].item() == 32
    """,
    "a batch from a loader": """
        data = torch.utils.data.TensorDataset(torch.ones(4, 2))
        batches = list(torch.utils.data.DataLoader(data, batch_size=2))
        assert len(batches) == 2 and batches[0][0].cuda().sum().item() == 4
    """,
    "several parts of PyTorch": """
        import torch.nn.functional, torch.backends.cudnn as cudnn
        from torch import Tensor, float16
        from torch.cuda import Stream, nvtx
        from torch.optim.lr_scheduler import StepLR
        with nvtx.range("step"), torch.profiler.record_function("step"):
            y = torch.nn.functional.relu(x)
        cudnn.benchmark = True
        with cudnn.flags(enabled=True, deterministic=True):
            assert cudnn.deterministic and not cudnn.benchmark
        layer = nn.Linear(2, 2).cuda()
        StepLR(torch.optim.SGD(layer.parameters(), lr=1.0), 1)
    """,
}


@pytest.mark.parametrize("name", LOOKED_AT)
def test_a_feature_is_as_with_a_gpu(name: str) -> None:
    body = textwrap.indent(textwrap.dedent(LOOKED_AT[name]), "    ")
    tail = (
        f"    return x\n\ndef prepare():\n    return None\n\ndef run(state, x):\n{body}"
    )
    x = np.ones((N, N), np.float32)
    program = program_of(HEAD + tail, {"x": (x, "device")})
    assert program.instructions


#: what the simulated GPU has not, or not so; and what is said
REFUSED = {
    "a GPU's and the host's": (
        "x + torch.ones(8)",
        "Expected all tensors to be on the",
    ),
    "NumPy of the GPU's": ("x.numpy()", "can't convert cuda:0 device type tensor"),
    "a wait in a capture": (
        "g = torch.cuda.CUDAGraph()\nwith torch.cuda.graph(g):\n    x.sum().item()",
        "operation not permitted when stream is capturing",
    ),
    "times": (
        "a = torch.cuda.Event(enable_timing=True)\na.elapsed_time(a)",
        "not known without a GPU",
    ),
    "whether work is done": ("torch.cuda.Stream().query()", "not known without a GPU"),
    "as many as the numbers say": ("x[x > 0]", "Use `torch.where`"),
    "a cell of CUDA's": ("nn.LSTM(8, 8).cuda()(x[None])", "LSTM"),
    "a compiler": ("torch.compile(torch.sin)(x)", "no compiler for `torch.compile`"),
    "memory without end": (
        "torch.empty(1 << 40, device='cuda')",
        "CUDA out of memory. Tried to allocate 4096.00 GiB",
    ),
    "pinning the GPU's": ("x.pin_memory()", "only dense CPU tensors can be pinned"),
    "many numbers of Python": ("torch.ones(3) + torch.tensor([0.0] * 20000)", "10,000"),
    "an operator that is not known": (
        "torch.linalg.svd(x)",
        "The simulated GPU has no",
    ),
    "sparse tensors": ("x.to_sparse()", "simulated GPU has no"),
    "writing an array": ("a = x.cpu().numpy()\na[0] = 1", "read-only"),
    "cuDNN that is off": (
        "torch.backends.cudnn.enabled = False\n"
        "F.conv2d(x.view(1, 1, 8, 8), torch.ones(1, 1, 3, 3, device='cuda'))",
        "cudnn.enabled = False",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_there_is_not_is_said_in_words(name: str) -> None:
    body, words = REFUSED[name]
    text = textwrap.indent(body, "    ")
    tail = f"{IDLE}{text}\n"
    x = np.ones((N, N), np.float32)
    left = left_of(HEAD + tail, {"x": (x, "device")}, {})
    assert words in left.problem
    assert left.line is not None
