"""Known models, people's own files, and configurations of Hugging Face."""

import json
import os
from pathlib import Path

import pytest

from warpbook_monitors.model_memory.models import ModelError, known_names, read_model

#: as published: model cards, torchvision's weights, Transformers' num_parameters()
PUBLISHED = {
    "bert-base": 109_482_240,
    "bert-large": 335_141_888,
    "deepseek-v2-lite": 15_706_484_224,
    "deepseek-v3": 671_026_404_352,
    "gpt2": 124_439_808,
    "gpt2-xl": 1_557_611_200,
    "gpt-oss-20b": 20_914_757_184,
    "gpt-oss-120b": 116_829_156_672,
    "llama-2-7b": 6_738_415_616,
    "llama-2-70b": 68_976_648_192,
    "llama-3-8b": 8_030_261_248,
    "llama-3-70b": 70_553_706_496,
    "mistral-7b": 7_241_732_096,
    "mixtral-8x7b": 46_702_792_704,
    "qwen2-7b": 7_615_616_512,
    "qwen3-30b-a3b": 30_532_122_624,
    "resnet-50": 25_557_032,
    "resnet-101": 44_549_160,
    "t5-base": 222_903_552,
    "vit-b-16": 86_567_656,
}


def test_every_known_model_has_its_published_count() -> None:
    assert {name: read_model(name).parameters for name in known_names()} == PUBLISHED


LLAMA = {
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "num_hidden_layers": 32,
    "vocab_size": 128256,
}
CONFIGS = {
    "gpt2": {"model_type": "gpt2", "n_embd": 768, "n_head": 12, "n_layer": 12},
    "bert-base": {"model_type": "bert"},
    "resnet-101": {
        "model_type": "resnet",
        "depths": [3, 4, 23, 3],
        "id2label": {str(number): "a name" for number in range(1000)},
    },
    "t5-base": {
        "model_type": "t5",
        "d_model": 768,
        "d_ff": 3072,
        "num_heads": 12,
        "num_layers": 12,
    },
    "llama-3-8b": {"model_type": "llama", **LLAMA},
    "mistral-7b": {
        "model_type": "mistral",
        **LLAMA,
        "vocab_size": 32000,
        "sliding_window": None,
        "_name_or_path": None,
    },
    "mixtral-8x7b": {"model_type": "mixtral", **LLAMA, "vocab_size": 32000},
    "qwen2-7b": {
        "model_type": "qwen2",
        **LLAMA,
        "hidden_size": 3584,
        "intermediate_size": 18944,
        "num_attention_heads": 28,
        "num_key_value_heads": 4,
        "num_hidden_layers": 28,
        "vocab_size": 152064,
    },
    "deepseek-v2-lite": {
        "model_type": "deepseek_v2",
        "hidden_size": 2048,
        "intermediate_size": 10944,
        "moe_intermediate_size": 1408,
        "num_attention_heads": 16,
        "num_hidden_layers": 27,
        "n_routed_experts": 64,
        "n_shared_experts": 2,
        "num_experts_per_tok": 6,
        "first_k_dense_replace": 1,
        "q_lora_rank": None,
        "vocab_size": 102400,
    },
}


@pytest.mark.parametrize("name", CONFIGS)
def test_a_configuration_of_hugging_face(name: str, tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(CONFIGS[name]))
    assert read_model(str(path)).parameters == PUBLISHED[name]


@pytest.mark.parametrize(
    ("fields", "count"),
    [
        # Qwen3 0.6B and Gemma 2B: heads that are not hidden / heads wide, tied
        (
            {
                "model_type": "qwen3",
                "hidden_size": 1024,
                "intermediate_size": 3072,
                "num_attention_heads": 16,
                "num_key_value_heads": 8,
                "head_dim": 128,
                "num_hidden_layers": 28,
                "vocab_size": 151936,
                "tie_word_embeddings": True,
            },
            596_049_920,
        ),
        (
            {
                "model_type": "gemma",
                "hidden_size": 2048,
                "intermediate_size": 16384,
                "num_attention_heads": 8,
                "num_key_value_heads": 1,
                "head_dim": 256,
                "num_hidden_layers": 18,
                "vocab_size": 256000,
            },
            2_506_172_416,
        ),
    ],
)
def test_heads_of_a_size_of_their_own(
    fields: dict[str, object], count: int, tmp_path: Path
) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(fields))
    assert read_model(str(path)).parameters == count


def test_a_file_of_ones_own_in_the_same_form(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(
        'name = "mine"\nsource = "me"\ntokens = 16\n[[blocks]]\nname = "all"\n'
        'times = 3\nlayers = [{ kind = "mlp", hidden = 8, intermediate = 32 }]\n'
    )
    assert read_model(str(path)).parameters == 3 * 2 * 8 * 32


def test_the_example_of_the_reference(tmp_path: Path) -> None:
    reference = Path(__file__).parents[3] / "docs/how-to/compute-memory.md"
    text = reference.read_text()
    path = tmp_path / "small.toml"
    path.write_text(text.partition("```toml\n")[2].partition("```")[0])
    attention = 2 * 512 * (512 + 128)
    layers = 8 * (2 * 512 + attention + 3 * 512 * 2048)
    assert read_model(str(path)).parameters == layers + 512 + 2 * 32000 * 512


def _gpt_oss(kinds: list[str] | None, **fields: object) -> str:
    sizes = {"hidden_size": 64, "intermediate_size": 64, "vocab_size": 64}
    counts = {"num_hidden_layers": 600, "num_local_experts": 4}
    own = {"model_type": "gpt_oss", "layer_types": kinds}
    return json.dumps({**sizes, **counts, **own, "num_attention_heads": 4, **fields})


LINEAR = {"kind": "linear", "inputs": 8, "outputs": 8}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{", "describes no model"),
        ("[" * 100_000, "nested too deeply"),
        ("[]", "describes no model"),
        ('{"model_type": "mamba"}', "not one of bert, deepseek_v2"),
        ('{"model_type": ["gpt2"]}', "not one of bert, deepseek_v2"),
        (_gpt_oss(["full_attention"]), "1 `layer_types` for 600 layers"),
        (_gpt_oss(["chunked_attention"]), r"at `\$.layer_types"),
        (_gpt_oss(None), "alternate 600 times"),
        (_gpt_oss(None, quantization_config=[]), r"at `\$.quantization_config"),
        ('{"model_type": "llama"}', "missing required field `hidden_size`"),
        (
            '{"model_type": "gpt2", "n_embd": -1}',
            r"Expected `int` >= 1 - at `\$.n_embd`",
        ),
        ('{"model_type": "gpt2", "n_embd": 1e300}', r"at `\$.n_embd`"),
        ('{"model_type": "gpt2", "n_embd": true}', "Expected `int`, got `bool`"),
        ('{"model_type": "gpt2", "n_layer": 9000000}', "Expected `int` <= 10000"),
        ('{"model_type": "gpt2", "n_head": 7}', "correct one, or add `head_dim`"),
        ('{"model_type": "gpt2", "resid_pdrop": "x"}', r"at `\$.resid_pdrop`"),
        ('{"model_type": "bert", "_name_or_path": 5}', "Expected `str`"),
        (
            json.dumps(
                {"name": "x", "source": "", "blocks": [{"name": "a", "layers": []}]}
            ),
            "layers",
        ),
        (
            json.dumps(
                {
                    "name": "x",
                    "source": "",
                    "blocks": [{"name": "a", "layers": [{**LINEAR, "inputs": 10**12}]}],
                }
            ),
            "inputs",
        ),
        (
            json.dumps(
                {
                    "name": "x",
                    "source": "",
                    "blocks": [{"name": "a", "layers": [{**LINEAR, "kind": "lstm"}]}],
                }
            ),
            "lstm",
        ),
    ],
)
def test_a_malformed_file_is_refused_with_what_to_do(
    content: str, words: str, tmp_path: Path
) -> None:
    path = tmp_path / "config.json"
    path.write_text(content)
    with pytest.raises(ModelError, match=words) as refused:
        read_model(str(path))
    assert len(str(refused.value)) < 1000


def test_toml_that_is_nested_too_deeply(tmp_path: Path) -> None:
    path = tmp_path / "deep.toml"
    path.write_text("a = " + "[" * 100_000)
    with pytest.raises(ModelError, match="describes no model"):
        read_model(str(path))


def test_what_is_no_file_of_some_size_is_not_read(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.json"
    os.mkfifo(pipe)
    with pytest.raises(ModelError, match="copy it to one"):
        read_model(str(pipe))
    with pytest.raises(ModelError, match="can't be read: No such file"):
        read_model(str(tmp_path / "none.json"))
    with pytest.raises(ModelError, match="not a possible path"):
        read_model("a\0b.json")
    large = tmp_path / "large.json"
    large.write_bytes(b" " * (4 << 20) + b"{}")
    with pytest.raises(ModelError, match="more than 4 MiB"):
        read_model(str(large))
    with pytest.raises(ModelError, match="not a known model: choose one of bert-base"):
        read_model("gpt5")
    with pytest.raises(ModelError, match="not a known model"):
        read_model("../known/gpt2")
