"""GGUF files converted once to a folder of safetensors in the user's cache."""

from __future__ import annotations

import hashlib
import io
import sys
from contextlib import AbstractContextManager, nullcontext, redirect_stderr
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

from separata import cache

from .errors import UnreadableModel

# What a converted folder depends on beside the file: the de-quantisation and the tokenizer conversion are
# transformers' own and may change with its major version; the last number is this module's.
CONVERTER = "transformers-5 separata-kit-llm-1"


def converted(file: Path, dtype: torch.dtype) -> Path:
    """The folder that a GGUF file was converted to, made now if it is not there.

    Args:
        file: The GGUF file; it is known by its sha256, not by its name.
        dtype: What the de-quantised weights are stored in.

    Returns:
        A folder with config.json, model.safetensors and the tokenizer's files.

    Raises:
        UnreadableModel: If the file is damaged or its architecture is not one that transformers converts.
    """
    with file.open("rb") as opened:
        digest = hashlib.file_digest(opened, "sha256").hexdigest()
    name = str(dtype).removeprefix("torch.")
    return cache.keep(
        "models", f"gguf {digest} {name} {CONVERTER}", lambda folder: _convert(file, dtype, folder)
    )


def _convert(file: Path, dtype: torch.dtype, folder: Path) -> None:
    at: dict[str, Any] = {"pretrained_model_name_or_path": file.parent, "gguf_file": file.name}
    # Transformers draws a bar here that its own settings don't reach; in a log it is hundreds of lines.
    quiet: AbstractContextManager[Any] = (
        nullcontext() if sys.stderr.isatty() else redirect_stderr(io.StringIO())
    )
    try:
        with quiet:
            _save(at, dtype, folder)
    except (ValueError, KeyError, OSError, NotImplementedError) as error:
        raise UnreadableModel(
            f"{file} can't be converted: {str(error).strip().partition(chr(10))[0]}",
            "name a complete .gguf file of a causal decoder whose architecture transformers supports",
        ) from error


def _save(at: dict[str, Any], dtype: torch.dtype, folder: Path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(**at)
    # dequantize=True gives a plain model: without it save_pretrained refuses.
    model = AutoModelForCausalLM.from_pretrained(
        **at, dtype=dtype, quantization_config=GgufConfig(dequantize=True)
    )
    tokenizer.save_pretrained(folder)
    model.save_pretrained(folder)
