"""One way to get a causal decoder and its tokenizer: from a folder, a GGUF file, a hub id or a named input."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoTokenizer,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
from transformers.utils import logging

from separata import inputs

from ._plugin import SMOLLM2
from .conversion import converted
from .errors import (
    HubUnavailable,
    InvalidOption,
    NoSafetensors,
    NotACausalDecoder,
    SourceNotFound,
    UnreadableModel,
)

NAMED = {SMOLLM2.name: SMOLLM2}
DTYPES = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}
HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?")


def load(
    source: str | Path,
    *,
    device: str | torch.device = "cpu",
    dtype: str | torch.dtype = "float32",
    layers: int | None = None,
    attn_implementation: str | None = None,
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Load a causal decoder, in evaluation mode, and its tokenizer.

    Only safetensors are read, and no code that comes with a model is run. A GGUF file is de-quantised and
    converted the first time; later loads read the converted folder from the user's cache.

    Args:
        source: A Hugging Face folder, a ``.gguf`` file, a hub id, or the named input ``smollm2``. A path that
            exists goes before a name.
        device: Where the model is put; ``auto`` spreads it over all devices (needs accelerate).
        dtype: ``float32``, ``float16``, ``bfloat16`` or the torch dtype.
        layers: Keep only the first so many layers: the real weights at a fraction of the cost, for tests.
        attn_implementation: Attention function of transformers' registry; its own choice if not given.

    Returns:
        The model and the tokenizer.

    Raises:
        SourceNotFound: If nothing is there under that path or name.
        HubUnavailable: If the hub can't be reached, or has no such model.
        NotACausalDecoder: If the model does not predict the next token.
        NoSafetensors: If its weights are not in safetensors.
        UnreadableModel: If transformers can't build it.
        InvalidOption: If ``dtype`` or ``layers`` is out of range.

    >>> model, tokenizer = load("smollm2", layers=4)  # doctest: +SKIP
    """
    torch_dtype = _dtype(dtype)
    with quiet():
        place = _resolve(str(source), torch_dtype)
        return _loaded(str(source), place, device, torch_dtype, layers, attn_implementation)


def _loaded(
    source: str,
    place: str,
    device: str | torch.device,
    dtype: torch.dtype,
    layers: int | None,
    attn_implementation: str | None,
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    model: Any
    with _explained(source, place):
        config = AutoConfig.from_pretrained(place)
        _check_decoder(source, config)
        if layers is not None:
            _keep_layers(config, layers)
        tokenizer = AutoTokenizer.from_pretrained(place)
        model = AutoModelForCausalLM.from_pretrained(
            place,
            config=config,
            dtype=dtype,
            use_safetensors=True,
            attn_implementation=attn_implementation,
            device_map="auto" if device == "auto" else None,
        )
    if device != "auto":
        model.to(device=device)
    return model.train(False), tokenizer


def _dtype(dtype: str | torch.dtype) -> torch.dtype:
    found = DTYPES.get(dtype) if isinstance(dtype, str) else dtype
    if found is None or found not in DTYPES.values():
        raise InvalidOption(f"dtype is {dtype!r}", f"dtype is one of {', '.join(DTYPES)}")
    return found


def _resolve(source: str, dtype: torch.dtype) -> str:
    """The folder to load from, or the hub id."""
    path = Path(source).expanduser()
    if not path.exists():
        if source in NAMED:
            path = inputs.locate(NAMED[source])
        elif HUB_ID.fullmatch(source) and path.suffix != ".gguf":
            return source
        else:
            raise SourceNotFound(
                f"there is no model at {source}",
                f"name a Hugging Face folder, a .gguf file, a hub id such as Qwen/Qwen3-0.6B, or {_names()}",
            )
    if path.is_dir():
        return str(path)
    if path.suffix == ".gguf":
        return str(converted(path, dtype))
    raise SourceNotFound(
        f"{source} is a file, but no .gguf file", "name the folder that holds config.json and *.safetensors"
    )


def _names() -> str:
    return " or ".join(NAMED)


def _check_decoder(source: str, config: Any) -> None:
    causal = set()
    for names in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.values():
        causal.update([names] if isinstance(names, str) else names)
    found = config.architectures or []
    known = config.model_type in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
    if config.is_encoder_decoder or not known or (found and not causal.intersection(found)):
        raise NotACausalDecoder(
            f"{source} holds {', '.join(found) or config.model_type}, which does not predict the next token",
            "name a causal decoder, such as a Llama, Qwen, Gemma or GPT-2 model with its language head",
        )


def _keep_layers(config: Any, layers: int) -> None:
    text = config.get_text_config()
    total = text.num_hidden_layers
    if not 1 <= layers <= total:
        raise InvalidOption(f"layers is {layers}", f"this model has {total} layers: layers is 1 to {total}")
    text.num_hidden_layers = layers
    if getattr(text, "layer_types", None):
        text.layer_types = text.layer_types[:layers]


@contextmanager
def _explained(source: str, place: str) -> Iterator[None]:
    """Turn what transformers raises into the kit's own errors."""
    try:
        yield
    except (OSError, ValueError, ImportError, KeyError) as error:
        if isinstance(error, (NotACausalDecoder, InvalidOption)):
            raise
        folder = Path(place)
        reason = str(error).strip().partition("\n")[0]
        if not folder.is_dir() and isinstance(error, OSError) and "safetensors" not in reason:
            raise HubUnavailable(
                f"{source} is no path here, and as a hub id it could not be fetched: {reason}",
                "check the spelling and the connection; once fetched a model works offline "
                f"(the named input {_names()} needs no hub)",
            ) from error
        if isinstance(error, OSError) and (not folder.is_dir() or not any(folder.glob("*.safetensors"))):
            raise NoSafetensors(
                f"{source} has no weights in safetensors",
                "pickled weights can run code and are refused: convert them with save_pretrained on a machine you "
                "trust them on",
            ) from error
        raise UnreadableModel(
            f"{source} can't be loaded: {reason}",
            "name a folder that save_pretrained wrote: config.json, tokenizer files and *.safetensors",
        ) from error


@contextmanager
def quiet() -> Iterator[None]:
    """Keep transformers' load report (it lists the layers left out on purpose) and its bars off the screen."""
    verbosity, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if bars:
            logging.enable_progress_bar()  # type: ignore[no-untyped-call]
