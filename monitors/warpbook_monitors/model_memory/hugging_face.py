"""The `config.json` of Hugging Face Transformers, as a description of blocks.

What a configuration leaves out has the default of Transformers' class for it. The
result is checked like any file's (`description.Model`), so that a size beyond its
bounds is refused there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from warpbook_monitors.plain_text import bounded

_Fields = dict[str, Any]
_MOST = 10_000_000


class _Config:
    """A configuration whose values are what they have to be, or refused."""

    def __init__(self, fields: _Fields) -> None:
        self._fields = fields

    def _value(self, key: str, default: Any) -> Any:
        """Give a value; null is the default, as in Transformers."""
        value = self._fields.get(key)
        return default if value is None else value

    def has(self, key: str) -> bool:
        return self._fields.get(key) is not None

    def number(self, key: str, default: int | None = None) -> int:
        value = self._value(key, default)
        if value is None:
            raise ValueError(f"`{key}` is missing: add it, a whole number")
        if type(value) is not int or not 1 <= value <= _MOST:
            raise ValueError(
                f"`{key}` is {bounded(repr(value), 40)}: "
                f"write a whole number from 1 to {_MOST:,}"
            )
        return value

    def flag(self, key: str, default: bool) -> bool:
        value = self._value(key, default)
        if not isinstance(value, bool):
            raise ValueError(f"`{key}` is no boolean: write true or false")
        return value

    def has_rate(self, key: str, default: float) -> bool:
        value = self._value(key, default)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ValueError(f"`{key}` is no number: write one from 0 to 1")
        return value > 0

    def word(self, key: str, default: str) -> str:
        value = self._value(key, default)
        if not isinstance(value, str):
            raise ValueError(f"`{key}` is no string: write one")
        return value

    def head_size(self, hidden: int, heads: int) -> int:
        if not self.has("head_dim") and hidden % heads:
            raise ValueError(
                f"hidden size {hidden} is no multiple of {heads} heads: "
                "correct one, or add `head_dim`"
            )
        return self.number("head_dim", hidden // heads or 1)


def blocks_of_config(fields: _Fields) -> _Fields:
    """Give the fields of a `description.Model`.

    Raises:
        ValueError: the architecture is another, or a value is malformed.
    """
    kind = fields.get("model_type")
    if not isinstance(kind, str) or kind not in _ARCHITECTURES:
        raise ValueError(
            f"`model_type` {bounded(repr(kind), 40)} is none of "
            f"{', '.join(sorted(_ARCHITECTURES))}; describe the model by its blocks"
        )
    config = _Config(fields)
    name = config.word("_name_or_path", "") or kind
    model = _ARCHITECTURES[kind](config)
    return {"name": bounded(name, 100), "source": f"config.json of {kind}", **model}


def _block(name: str, *layers: _Fields, times: int = 1, edge: bool = False) -> _Fields:
    return {"name": name, "layers": list(layers), "times": times, "edge": edge}


def _attention(hidden: int, heads: int, **more: Any) -> _Fields:
    sizes = {"kv_heads": heads, "head_size": hidden // heads or 1}
    return {"kind": "attention", "hidden": hidden, "heads": heads, **sizes, **more}


def _mlp(hidden: int, intermediate: int, **more: Any) -> _Fields:
    return {"kind": "mlp", "hidden": hidden, "intermediate": intermediate, **more}


def _norm(size: int, bias: bool = False) -> _Fields:
    return {"kind": "norm", "size": size, "bias": bias}


def _table(rows: int, columns: int) -> _Fields:
    return {"kind": "table", "rows": rows, "columns": columns}


def _embedding(rows: int, columns: int, dropout: bool = False) -> _Fields:
    sizes = {"rows": rows, "columns": columns}
    return {"kind": "embedding", **sizes, "dropout": dropout}


def _logits(hidden: int, vocabulary: int, **more: Any) -> _Fields:
    return {"kind": "logits", "hidden": hidden, "vocabulary": vocabulary, **more}


def _llama(
    config: _Config,
    *,
    tied: bool = False,
    qkv_bias: bool | None = None,
    head_norm: bool = False,
    experts: bool = False,
    windowed: bool = False,
) -> _Fields:
    hidden = config.number("hidden_size")
    heads = config.number("num_attention_heads")
    vocabulary = config.number("vocab_size")
    intermediate = config.number("intermediate_size")
    bias = config.flag("attention_bias", False)
    has_window = windowed and config.has("sliding_window")
    attention = _attention(
        hidden,
        heads,
        kv_heads=config.number("num_key_value_heads", heads),
        head_size=config.head_size(hidden, heads),
        bias=bias if qkv_bias is None else qkv_bias,
        output_bias=bias,
        head_norm=head_norm,
        causal=True,
        window=config.number("sliding_window") if has_window else 0,
    )
    if experts:
        inner = {
            "kind": "experts",
            "hidden": hidden,
            "intermediate": intermediate,
            "experts": config.number("num_local_experts", 8),
            "active": config.number("num_experts_per_tok", 2),
        }
    else:
        has_bias = config.flag("mlp_bias", False)
        inner = _mlp(hidden, intermediate, activation="silu", gated=True, bias=has_bias)
    layer = (_norm(hidden), attention, _norm(hidden), inner)
    is_tied = config.flag("tie_word_embeddings", tied)
    head = (_norm(hidden), _logits(hidden, vocabulary, tied=is_tied))
    return {
        "tokens": config.number("max_position_embeddings", 2048),
        "blocks": [
            _block("embeddings", _embedding(vocabulary, hidden), edge=True),
            _block("layers", *layer, times=config.number("num_hidden_layers")),
            _block("head", *head, edge=True),
        ],
    }


def _mistral(config: _Config) -> _Fields:
    return _llama(config, windowed=True)


def _mixtral(config: _Config) -> _Fields:
    return _llama(config, experts=True, windowed=True)


def _qwen2(config: _Config) -> _Fields:
    return _llama(config, qkv_bias=True)


def _qwen3(config: _Config) -> _Fields:
    return _llama(config, head_norm=True)


def _gemma(config: _Config) -> _Fields:
    return _llama(config, tied=True)


def _gpt2(config: _Config) -> _Fields:
    hidden = config.number("n_embd", 768)
    heads = config.number("n_head", 12)
    vocabulary = config.number("vocab_size", 50257)
    positions = config.number("n_positions", 1024)
    dropout = config.has_rate("resid_pdrop", 0.1)
    attention = _attention(
        hidden,
        heads,
        head_size=config.head_size(hidden, heads),
        bias=True,
        output_bias=True,
        causal=True,
        dropout=config.has_rate("attn_pdrop", 0.1),
    )
    inner = _mlp(
        hidden, config.number("n_inner", 4 * hidden), bias=True, dropout=dropout
    )
    layer = (_norm(hidden, True), attention, _norm(hidden, True), inner)
    tied = config.flag("tie_word_embeddings", True)
    embeddings = (
        _embedding(vocabulary, hidden, config.has_rate("embd_pdrop", 0.1)),
        _table(positions, hidden),
    )
    return {
        "tokens": positions,
        "most_tokens": positions,
        "blocks": [
            _block("embeddings", *embeddings, edge=True),
            _block("layers", *layer, times=config.number("n_layer", 12)),
            _block(
                "head",
                _norm(hidden, True),
                _logits(hidden, vocabulary, tied=tied),
                edge=True,
            ),
        ],
    }


def _bert(config: _Config) -> _Fields:
    hidden = config.number("hidden_size", 768)
    positions = config.number("max_position_embeddings", 512)
    dropout = config.has_rate("hidden_dropout_prob", 0.1)
    embeddings = (
        _embedding(config.number("vocab_size", 30522), hidden, dropout),
        _table(positions, hidden),
        _table(config.number("type_vocab_size", 2), hidden),
        _norm(hidden, True),
    )
    pooler = {"kind": "linear", "inputs": hidden, "outputs": hidden}
    return {
        "tokens": positions,
        "most_tokens": positions,
        "blocks": [
            _block("embeddings", *embeddings, edge=True),
            _encoder(config, hidden, dropout),
            _block("pooler", pooler, edge=True),
        ],
    }


def _encoder(config: _Config, hidden: int, dropout: bool) -> _Fields:
    heads = config.number("num_attention_heads", 12)
    attention = _attention(
        hidden,
        heads,
        head_size=config.head_size(hidden, heads),
        bias=True,
        output_bias=True,
        dropout=config.has_rate("attention_probs_dropout_prob", 0.1),
    )
    inner = _mlp(
        hidden,
        config.number("intermediate_size", 3072),
        bias=True,
        dropout=dropout,
    )
    layer = (attention, _norm(hidden, True), inner, _norm(hidden, True))
    return _block("layers", *layer, times=config.number("num_hidden_layers", 12))


def _t5(config: _Config) -> _Fields:
    hidden = config.number("d_model", 512)
    heads = config.number("num_heads", 8)
    layers = config.number("num_layers", 6)
    vocabulary = config.number("vocab_size", 32128)
    dropout = config.has_rate("dropout_rate", 0.1)
    gated = config.word("feed_forward_proj", "relu").startswith("gated-")
    sizes = {"head_size": config.number("d_kv", 64), "dropout": dropout}
    seen, own, cross = (
        _attention(hidden, heads, **sizes, **kind)
        for kind in ({}, {"causal": True}, {"cross": True})
    )
    inner = _mlp(
        hidden,
        config.number("d_ff", 2048),
        activation="gelu" if gated else "relu",
        gated=gated,
        dropout=dropout,
        inner_dropout=dropout,
    )
    norm = _norm(hidden)
    bias = _table(config.number("relative_attention_num_buckets", 32), heads)
    shared = _embedding(vocabulary, hidden, dropout)
    tied = config.flag("tie_word_embeddings", True)
    return {
        "tokens": config.number("n_positions", 512),
        "blocks": [
            _block("embeddings", shared, bias, bias, edge=True),
            _block("encoder", norm, seen, norm, inner, times=layers),
            _block("encoder norm", norm, edge=True),
            _block(
                "decoder",
                *(norm, own, norm, cross, norm, inner),
                times=config.number("num_decoder_layers", layers),
            ),
            _block(
                "head",
                norm,
                _logits(hidden, vocabulary, tied=tied),
                edge=True,
            ),
        ],
    }


_ARCHITECTURES: dict[str, Callable[[_Config], _Fields]] = {
    "bert": _bert,
    "gemma": _gemma,
    "gpt2": _gpt2,
    "llama": _llama,
    "mistral": _mistral,
    "mixtral": _mixtral,
    "qwen2": _qwen2,
    "qwen3": _qwen3,
    "t5": _t5,
}
