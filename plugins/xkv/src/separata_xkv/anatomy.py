"""What of a model concerns its cache: which layers keep all keys and values, and how their keys are rotated."""

from __future__ import annotations

from typing import Any

from attrs import frozen
from torch import Tensor
from transformers import DynamicCache
from transformers.cache_utils import DynamicLayer

from .errors import UnsupportedModel
from .rope import Unrotated, rotation_of

ATTENTION = "separata_xkv"


@frozen
class Anatomy:
    """The decoder of a model, seen from its cache.

    Args:
        config: The decoder's config, the very object that its attention modules hold.
        layers: Layers with full attention and keys of their own; sliding windows, linear attention and layers
            that share another's keys are not among them.
        rotation: The rotary embedding, or none.
        rotated: The layers whose keys it turns.
    """

    config: Any
    layers: tuple[int, ...]
    rotation: Unrotated
    rotated: frozenset[int]

    @classmethod
    def of(cls, model_or_config: Any) -> Anatomy:
        """Look at a transformers model or its config.

        Raises:
            UnsupportedModel: If it is an encoder-decoder or attends to another model's states, or if no layer
                keeps all its keys and values.
        """
        whole = getattr(model_or_config, "config", model_or_config)
        if getattr(whole, "is_encoder_decoder", False) or getattr(whole, "add_cross_attention", False):
            raise UnsupportedModel(
                f"{whole.model_type} attends to an encoder", "use a decoder-only language model"
            )
        config = whole.get_text_config(decoder=True)
        layers = [
            i for i, layer in enumerate(DynamicCache(config=config).layers) if type(layer) is DynamicLayer
        ]
        if not layers:
            raise UnsupportedModel(
                f"no layer of this {config.model_type} keeps all its keys and values",
                "use a model with full attention; sliding windows and linear attention have nothing to compress",
            )
        # Latent attention rotates only what it hands over as values.
        latent = getattr(config, "kv_lora_rank", None) is not None
        rotation = Unrotated() if latent else rotation_of(model_or_config, _head_dim(config))
        # In transformers a 1 in no_rope_layers marks a layer that does rotate.
        turns = getattr(config, "no_rope_layers", None) or [1] * config.num_hidden_layers
        return cls(config, tuple(layers), rotation, frozenset(i for i in layers if turns[i]))

    @property
    def defers(self) -> bool:
        """Whether the model's attention is ours, so that reconstruction can be left to it."""
        return bool(self.config._attn_implementation == ATTENTION)

    def rotation_of(self, layer: int) -> Unrotated:
        """The rotation of a layer's keys."""
        return self.rotation if layer in self.rotated else Unrotated()

    def is_latent(self, keys: Tensor) -> bool:
        """Whether keys are latents without position, as multi-head latent attention caches them.

        Such a layer hands over one head of ``kv_lora_rank`` channels as keys, and the rotated rest as values.
        """
        rank = getattr(self.config, "kv_lora_rank", None)
        return rank is not None and keys.shape[1] == 1 and keys.shape[-1] == rank


def _head_dim(config: Any) -> int:
    # Gemma 4 gives its layers with full attention wider heads.
    given = getattr(config, "global_head_dim", None) or getattr(config, "head_dim", None)
    return int(given or config.hidden_size // config.num_attention_heads)
