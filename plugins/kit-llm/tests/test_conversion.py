from __future__ import annotations

import json
from pathlib import Path

import gguf
import pytest
import torch
from torch import Tensor
from transformers import LlamaForCausalLM, PreTrainedTokenizerFast

from separata_kit_llm import load
from separata_kit_llm.conversion import converted

PARTS = {
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
}


def interleaved(weight: Tensor, heads: int) -> Tensor:
    """llama.cpp rotates neighbouring channels, transformers the two halves: rows are stored in its order."""
    rows, columns = weight.shape
    return weight.reshape(heads, 2, rows // heads // 2, columns).transpose(1, 2).reshape(rows, columns)


@pytest.fixture
def file(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    llama: LlamaForCausalLM,
    tokenizer: PreTrainedTokenizerFast,
) -> Path:
    """The tiny Llama written as an unquantised GGUF file."""
    monkeypatch.setenv("SEPARATA_CACHE", str(tmp_path / "cache"))
    config, path = llama.config, tmp_path / "tiny.gguf"
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_block_count(config.num_hidden_layers)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    writer.add_rope_dimension_count(config.head_dim)
    writer.add_vocab_size(config.vocab_size)
    bpe = json.loads(tokenizer.backend_tokenizer.to_str())["model"]
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(sorted(bpe["vocab"], key=bpe["vocab"].get))
    writer.add_token_merges([" ".join(merge) for merge in bpe["merges"]])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    weights = llama.state_dict()
    for name, stored in (
        ("model.embed_tokens", "token_embd"),
        ("model.norm", "output_norm"),
        ("lm_head", "output"),
    ):
        writer.add_tensor(f"{stored}.weight", weights[f"{name}.weight"].numpy())
    for layer in range(config.num_hidden_layers):
        for name, stored in PARTS.items():
            weight = weights[f"model.layers.{layer}.{name}.weight"]
            if stored in ("attn_q", "attn_k"):
                weight = interleaved(weight, config.num_attention_heads // (2 if stored == "attn_k" else 1))
            writer.add_tensor(f"blk.{layer}.{stored}.weight", weight.contiguous().numpy())
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def test_gguf_gives_the_model_and_tokenizer_that_were_written(
    file: Path, llama: LlamaForCausalLM, tokenizer: PreTrainedTokenizerFast, input_ids: Tensor
) -> None:
    loaded, read = load(file)
    with torch.no_grad():
        torch.testing.assert_close(loaded(input_ids).logits, llama(input_ids).logits, rtol=0, atol=1e-5)
    text = "The harbour lay quiet."
    assert read(text, add_special_tokens=False).input_ids == tokenizer(text).input_ids


def test_a_file_is_converted_once_and_known_by_its_content(file: Path, tmp_path: Path) -> None:
    folder = converted(file, torch.float32)
    stamp = (folder / "model.safetensors").stat().st_mtime_ns
    moved = file.rename(tmp_path / "other-name.gguf")
    assert converted(moved, torch.float32) == folder
    assert (folder / "model.safetensors").stat().st_mtime_ns == stamp
    assert converted(moved, torch.bfloat16) != folder
