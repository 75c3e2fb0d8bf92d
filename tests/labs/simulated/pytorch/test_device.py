"""What a program asks of the GPU works, or is not supported; it is never a mistake."""

from __future__ import annotations

import re

import numpy as np
import pytest

from tests.labs.simulated.learner_file import judged_file, left_of
from tests.labs.simulated.sample_lab import RIGHT
from warpbook_labs.course.session import check_public, find
from warpbook_labs.engines.simulated.messages import CaseRun
from warpbook_labs.lab.loaded import LoadedLab

#: programs ask these of one GPU, and go by the answer
ANSWERED = {
    "torch.cuda.device_count(), torch.accelerator.device_count()": "(1, 1)",
    "torch.cuda.current_device(), torch.accelerator.current_device_index()": "(0, 0)",
    "torch.cuda.set_device('cuda:0'), torch.accelerator.set_device_index(0)": (
        "(None, None)"
    ),
    "torch.cuda.get_device_capability('cuda')": "(9, 0)",
    "torch.cuda.get_device_properties(0).multi_processor_count": "132",
    "torch.cuda.get_device_name()": "'simulated H200'",
    "torch.cuda.mem_get_info()[0] + 1024 == torch.cuda.mem_get_info()[1]": "True",
    "torch.cuda.memory_allocated(), torch.accelerator.memory_allocated()": (
        "(1024, 1024)"
    ),
    "torch.cuda.memory_stats()['allocated_bytes.all.peak']": "1024",
    "torch.cuda.memory_reserved('cuda:0'), torch.cuda.max_memory_reserved()": (
        "(1024, 1024)"
    ),
    "torch.cuda.reset_peak_memory_stats(), torch.cuda.max_memory_allocated()": (
        "(None, 1024)"
    ),
    "'| Allocated memory' in torch.cuda.memory_summary()": "True",
    "torch.accelerator.synchronize(), torch.accelerator.empty_cache()": "(None, None)",
    "torch.cuda.get_rng_state().dtype": "torch.uint8",
    "torch.cuda.is_bf16_supported(), torch.backends.cuda.is_built()": "(True, True)",
    "torch.cuda.ipc_collect(), torch.cuda.can_device_access_peer(0, 0)": (
        "(None, False)"
    ),
}
#: PyTorch has them, and the simulated GPU has not: by what they are named
LACKING = {
    "torch.cuda.memory_snapshot()": "torch.cuda.memory.memory_snapshot",
    "torch.cuda.set_per_process_memory_fraction(0.5)": "memory_fraction",
    "torch.cuda.utilization()": "torch.cuda.utilization",
    "torch.cuda.current_blas_handle()": "torch.cuda.current_blas_handle",
    "torch.cuda.set_sync_debug_mode('error')": "torch.cuda.set_sync_debug_mode",
    "torch.cuda.ExternalStream(0)": "ExternalStream",
    "torch.cuda.memory.MemPool()": "MemPool",
    "torch.cuda.nccl.version()": "torch.cuda.nccl.version",
    "torch.cuda.FloatTensor([1.0])": "torch.cuda.FloatTensor",
    "torch.cuda.comm.broadcast(held, [0])": "comm.broadcast",
    "torch.cuda.tunable.get_results()": "torch.cuda.tunable.get_results",
    "torch.backends.cuda.cufft_plan_cache.size": "torch.backends.cuda",
    "torch.nested.nested_tensor([held, held])": "",
    "torch.save(held, __import__('io').BytesIO())": "torch.utils.serialization",
    "__import__('copy').deepcopy(held)": "torch.UntypedStorage",
    "torch.cuda.Event().query()": "an event has come",
    "torch.compile(torch.sin)(held)": "torch.compile",
}
#: words of PyTorch's about its own parts
_INTERNAL = re.compile(r"torch\._C|_cuda_|ATen_cuda|without CUDA|NVML|dummy|Facebook")
#: entered around all that `run` does
MODES = (
    "torch.no_grad()",
    "torch.inference_mode()",
    "torch.cuda.device(0)",
    "torch.cuda.device('cuda')",
    "torch.device('cuda')",
    "torch.autocast('cuda', enabled=False)",
)
HOST_LABS = ("host-device-copies", "fix-the-trace", "convolution-settings")


def left_by(call: str, where: str = "run") -> CaseRun:
    """Ask it, while 1,024 bytes of the GPU are held."""
    at_import = "" if where == "run" else f"print(repr({call}))\n"
    source = (
        f"import torch\n{at_import}\n\ndef prepare():\n    pass\n\n\n"
        "def run(state):\n    held = torch.ones(256, device='cuda')\n"
        f"    print(repr(({call})))\n"
    )
    return left_of(source, {}, {})


@pytest.mark.parametrize("call", ANSWERED)
def test_what_programs_ask_of_one_gpu_is_answered(call: str) -> None:
    left = left_by(call)
    assert (left.problem, left.printed.strip()) == ("", ANSWERED[call])


@pytest.mark.parametrize("call", LACKING)
def test_what_is_lacking_is_not_supported_by_its_name(call: str) -> None:
    left = left_by(call)
    assert left.is_unsupported and left.line == 10, left.problem
    assert LACKING[call] in left.problem
    assert not _INTERNAL.search(left.problem)


@pytest.mark.parametrize(
    "body",
    [
        "torch.ones(2, 3, device='cuda') @ torch.ones(2, 3, device='cuda')",
        "torch.ones(2, device='cuda') + torch.ones(2)",
        "torch.ones(2, device='cuda').sum(dim=5)",
        "torch.cuda.synchronise()",
        "torch.cuda.device(1).__enter__()",
        "held.no_such_method()",
        "{}['a']",
    ],
)
def test_what_is_wrong_on_any_gpu_stays_a_mistake(body: str) -> None:
    left = left_by(body)
    assert left.problem and not left.is_unsupported


@pytest.mark.parametrize("name", HOST_LABS)
def test_modes_of_pytorch_change_nothing_of_what_is_judged(name: str) -> None:
    lab = find(name)
    plain = check_public(lab, lab.reference, use_gpu=False).result
    for mode in MODES:
        source = (
            f"{lab.reference}\nimport torch\n_run = run\n\n\n"
            f"def run(*args, **kwargs):\n    with {mode}:\n"
            "        return _run(*args, **kwargs)\n"
        )
        result = check_public(lab, source, use_gpu=False).result
        assert result.status == "passed", (mode, result.cases)
        assert [case.host_counts for case in result.cases] == [
            case.host_counts for case in plain.cases
        ], mode


def test_tensors_of_inference_mode_are_judged_as_others() -> None:
    source = """
import torch
from torch.nn import functional as F


def prepare(n):
    with torch.inference_mode():
        return torch.ones(1, 1, 3, 3, device="cuda").to(torch.float32)


def run(state, x, out):
    with torch.inference_mode():
        image = x.to("cuda").reshape(1, 1, 4, 4)
        blurred = F.conv2d(F.pad(image, (1, 1, 1, 1)), state).contiguous()
        out.copy_(F.linear(blurred.view(4, 4), torch.eye(4, device="cuda")))
"""
    given = np.arange(16, dtype=np.float32).reshape(4, 4)
    done = judged_file(source, [given], "pinned")
    padded = np.pad(given, 1)
    right = sum(padded[i : i + 4, j : j + 4] for i in range(3) for j in range(3))
    # the copy to page-locked memory has ended when `run` has
    assert np.allclose(done.outputs[0]["out"], right)


def test_what_is_lacking_where_a_file_is_loaded_is_not_supported(
    simulated: LoadedLab,
) -> None:
    for call, status in (
        ("torch.cuda.get_device_properties(0).name", "passed"),
        ("torch.cuda.memory_snapshot()", "unsupported"),
    ):
        source = f"import torch\nprint({call})\n{RIGHT.replace('DEVICE', repr('cuda'))}"
        result = check_public(simulated, source, use_gpu=False).result
        assert result.status == status, result
