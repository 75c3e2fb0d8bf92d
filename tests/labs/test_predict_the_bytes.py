"""What is asked to be predicted is what PyTorch's own models have."""

from __future__ import annotations

import random
from types import ModuleType
from typing import Any

import pytest

from warpbook_labs.lab.loaded import LoadedLab
from warpbook_labs.lab.python.questions import Question

LAB = "predict-the-bytes"

CONFIG = {
    "model_type": "qwen2",
    "num_hidden_layers": 2,
    "hidden_size": 64,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "intermediate_size": 96,
    "vocab_size": 128,
    "tie_word_embeddings": False,
}
TRAINING = {
    "precision": "fp32",
    "optimizer": "adam",
    "batch": 2,
    "sequence": 32,
    "flash": True,
    "recompute": False,
}


@pytest.mark.parametrize("kind", ["llama", "qwen2"])
@pytest.mark.parametrize("tied", [True, False])
def test_parameters_are_those_of_a_model_in_pytorch(
    lab: LoadedLab, given: dict[str, Any], kind: str, tied: bool
) -> None:
    config = {**CONFIG, "model_type": kind, "tie_word_embeddings": tied}
    question = Question("parameters", {"config": config})
    assert lab.cases.judge(question, given["counted"](config)) == ""
    assert "expected" in lab.cases.judge(question, given["counted"](config) + 1)


def test_what_a_layer_keeps_is_what_autograd_holds(
    lab: LoadedLab, given: dict[str, Any]
) -> None:
    torch = pytest.importorskip("torch")
    config = {**CONFIG, "tie_word_embeddings": True}
    reference = ModuleType("answers")
    exec(lab.reference, reference.__dict__)
    model = given["Decoder"](config, flash=False)
    weights = {parameter.data_ptr() for parameter in model.parameters()}
    held: dict[int, int] = {}

    def note(tensor: Any) -> Any:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in weights:
            held[storage.data_ptr()] = storage.nbytes()
        return tensor

    tokens = torch.randint(128, (2, 32))
    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        # so that nothing is freed, and no address is seen twice
        _logits = model(tokens)
    way = {**TRAINING, "flash": False}
    predicted = reference.activation_bytes(config, way)
    # norms on the CPU are made of several operations, which keep more
    norms = 5 * 2 * 32 * 64 * 4
    assert predicted <= sum(held.values()) <= predicted + 3 * norms
    arguments = {"config": config, "training": {**way, "gpus": 1, "zero": 0}}
    assert lab.cases.judge(Question("activation_bytes", arguments), predicted) == ""


def test_without_a_gpu_it_is_said_that_no_peak_is_measured(
    given: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    measured = given["measure"](CONFIG, TRAINING)
    assert measured["parameters"] == given["counted"](CONFIG)
    assert measured["peak_bytes"] == "not measured: there is no GPU"


@pytest.mark.parametrize("way", [{}, {"precision": "autocast", "recompute": True}])
def test_the_model_to_measure_trains(
    given: dict[str, Any], way: dict[str, Any]
) -> None:
    assert given["run"](CONFIG, {**TRAINING, **way}, "cpu") > 0


def test_mistakes_show_in_every_draw(lab: LoadedLab) -> None:
    for seed in range(8):
        drawn = lab.cases.questions(random.Random(seed))
        for name, source in lab.wrong.items():
            answers = ModuleType("answers")
            exec(source, answers.__dict__)
            mistakes = (
                lab.cases.judge(
                    question,
                    getattr(answers, question.function)(*question.arguments.values()),
                )
                for question in drawn
            )
            assert any(mistakes), (seed, name)


def test_answers_that_are_no_sizes_are_refused_in_words(lab: LoadedLab) -> None:
    training = {**TRAINING, "gpus": 1, "zero": 0}
    question = Question("state_bytes", {"config": CONFIG, "training": training})
    assert "keys weights, gradients, optimizer" in lab.cases.judge(question, {})
    bad = dict.fromkeys(("weights", "gradients", "optimizer"), float("nan"))
    assert lab.cases.judge(question, bad).startswith("weights: Returned nan")
