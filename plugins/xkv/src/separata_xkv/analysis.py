"""How much layers have in common: the measurements that say whether, and how, to compress across them."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Sequence
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from transformers.cache_utils import Cache

from .anatomy import Anatomy
from .config import XKVConfig
from .crosslayer_svd import gram_matrix
from .errors import CacheMismatch, InvalidSetting
from .group import heads_together
from .grouping import alike, windows
from .ranks import resolve_ranks
from .similarity import cka_matrix, effective_rank, token_cosine

Array = NDArray[np.float64]


class CrossLayerCKA:
    """Similarity of the keys and values of all layers, and what follows for grouping and ranks.

    Keys are taken before RoPE. Adjacent layers usually have a high linear CKA although the states of a single
    token are nearly orthogonal (xKV): they share a subspace, not its basis.

    Args:
        model: The model that filled the caches, or its config.
        energy: Share of the squared norm that the suggested ranks keep.
        threshold: Least mean CKA at which a layer joins the group before it.
        window: Most layers in a suggested group.
        windows: Group sizes whose errors are compared.
        ratios: Compression ratios at which they are compared.
        max_tokens: Tokens of each cache that are looked at, evenly spread.

    Attributes:
        layers_: Numbers of the ``n`` layers that can be compressed.
        tokens_: Tokens that were looked at.
        key_cka_: Linear CKA of the keys of each pair of layers, ``n x n``.
        value_cka_: The same of the values.
        key_cosine_: Mean cosine between the keys of one token in two layers, ``n x n``; NaN where widths differ.
        value_cosine_: The same of the values.
        key_rank_: Singular vectors that keep ``energy`` of each layer's keys, ``n``.
        value_rank_: The same of the values.
        key_error_: Relative squared error of the keys for each of ``windows`` and ``ratios``, at equal bytes.
        value_error_: The same of the values.
        groups_: Suggested groups of layer numbers.
        ranks_: Rank of keys and of values that keep ``energy`` of each suggested group.

    Example:
        >>> study = CrossLayerCKA(model).fit(dynamic_cache)
        >>> study.key_cka_.diagonal(1).mean()
    """

    def __init__(
        self,
        model: Any,
        *,
        energy: float = 0.95,
        threshold: float = 0.5,
        window: int = 4,
        windows: Sequence[int] = (1, 2, 4),
        ratios: Sequence[float] = (2.0, 4.0, 8.0, 16.0),
        max_tokens: int = 1024,
    ) -> None:
        self.model = model
        self.energy = energy
        self.threshold = threshold
        self.window = window
        self.windows = windows
        self.ratios = ratios
        self.max_tokens = max_tokens

    def fit(self, caches: Cache | Iterable[Cache], y: object = None) -> Self:
        """Measure the states that prompts left in caches.

        Args:
            caches: One or several ``DynamicCache`` objects that the model filled with prompts without padding.
            y: Ignored.

        Returns:
            The estimator.

        Raises:
            CacheMismatch: If a cache is empty or belongs to another model.
            InvalidSetting: If ``energy`` is no share.
        """
        if not 0 < self.energy <= 1:
            raise InvalidSetting(f"energy is {self.energy}", "energy is a share between 0 and 1")
        anatomy = Anatomy.of(self.model)
        found = [caches] if isinstance(caches, Cache) else list(caches)
        if not found:
            raise CacheMismatch("there are no caches", "pass one DynamicCache at least")
        sampled = [self._sample(anatomy, cache) for cache in found]
        keys = [torch.cat([keys[i] for keys, _ in sampled]) for i in range(len(anatomy.layers))]
        values = [torch.cat([values[i] for _, values in sampled]) for i in range(len(anatomy.layers))]
        self.layers_ = list(anatomy.layers)
        self.tokens_ = int(keys[0].shape[0])
        self.key_cka_, self.value_cka_ = cka_matrix(keys).numpy(), cka_matrix(values).numpy()
        self.key_cosine_, self.value_cosine_ = _cosines(keys), _cosines(values)
        self.key_rank_ = np.array([self._rank([layer]) for layer in keys])
        self.value_rank_ = np.array([self._rank([layer]) for layer in values])
        self.key_error_, self.value_error_ = self._errors(keys, values)
        similarity = torch.from_numpy((self.key_cka_ + self.value_cka_) / 2)
        slots = alike(similarity, self.threshold, self.window)
        self.groups_ = [tuple(self.layers_[slot] for slot in group) for group in slots]
        kept = [
            [self._rank([states[slot] for slot in group]) for states in (keys, values)] for group in slots
        ]
        self.ranks_ = [(rank_key, rank_value) for rank_key, rank_value in kept]
        return self

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The constructor's parameters by name.

        Args:
            deep: Ignored: no parameter is an estimator.
        """
        return {name: getattr(self, name) for name in inspect.signature(type(self)).parameters}

    def set_params(self, **params: Any) -> Self:
        """Change parameters.

        Raises:
            InvalidSetting: If there is no parameter of that name.
        """
        known = self.get_params()
        for name, value in params.items():
            if name not in known:
                raise InvalidSetting(
                    f"there is no parameter {name}", f"the parameters are {', '.join(known)}"
                )
            setattr(self, name, value)
        return self

    def as_dict(self) -> dict[str, Any]:
        """Everything that was learned, as plain numbers and lists."""
        learned = {name: value for name, value in vars(self).items() if name.endswith("_")}
        return {
            name.removesuffix("_"): value.tolist() if isinstance(value, np.ndarray) else value
            for name, value in learned.items()
        }

    def _sample(self, anatomy: Anatomy, cache: Cache) -> tuple[list[Tensor], list[Tensor]]:
        """Keys before RoPE and values of some tokens: for each layer a ``tokens x width`` tensor."""
        keys, values = [], []
        for index in anatomy.layers:
            layer: Any = cache.layers[index] if index < len(cache.layers) else None
            if layer is None or layer.keys is None or not layer.keys.numel():
                raise CacheMismatch(
                    f"the cache holds no keys of layer {index}",
                    "pass a DynamicCache that the model has filled",
                )
            batch, _, length, _ = layer.keys.shape
            rows = torch.linspace(0, length - 1, max(min(length, self.max_tokens // batch), 1)).long()
            rotation, taken = anatomy.rotation_of(index), rows.to(layer.keys.device)
            tables = rotation.tables(taken.expand(batch, -1), length - 1)
            unrotated = rotation.unrotate(layer.keys[:, :, taken], tables)
            keys.append(heads_together(unrotated).flatten(0, 1).float().cpu())
            values.append(heads_together(layer.values[:, :, taken]).flatten(0, 1).float().cpu())
        return keys, values

    def _rank(self, states: list[Tensor]) -> int:
        return effective_rank(_energies(states), self.energy)

    def _errors(self, keys: list[Tensor], values: list[Tensor]) -> tuple[Array, Array]:
        """Summed squared error over summed squared norm, at the ranks that each ratio buys."""
        shape = (len(self.windows), len(self.ratios))
        errors = np.zeros((2, *shape))
        norms = [sum(float(layer.double().square().sum()) for layer in states) for states in (keys, values)]
        for row, size in enumerate(self.windows):
            for group in windows(range(len(keys)), size):
                widths = [[states[slot].shape[-1] for slot in group] for states in (keys, values)]
                energies = [_energies([states[slot] for slot in group]) for states in (keys, values)]
                for column, ratio in enumerate(self.ratios):
                    ranks = resolve_ranks(XKVConfig(ratio=ratio), self.tokens_, *widths)
                    for side in (0, 1):
                        errors[side, row, column] += float(energies[side][ranks[side] :].sum()) / norms[side]
        return errors[0], errors[1]


def _cosines(states: list[Tensor]) -> Array:
    found = np.ones((len(states), len(states)))
    for one in range(len(states)):
        for other in range(one):
            same_width = states[one].shape == states[other].shape
            cosine = float(token_cosine(states[one], states[other])) if same_width else np.nan
            found[one, other] = found[other, one] = cosine
    return found


def _energies(states: list[Tensor]) -> Tensor:
    """Squared singular values of the states side by side, in falling order."""
    if states[0].shape[0] < sum(layer.shape[-1] for layer in states):
        joined = torch.cat(states, dim=-1).double()
        gram = joined @ joined.mT
    else:
        gram = gram_matrix(states)
    energies: Tensor = torch.linalg.eigvalsh(gram)
    return energies.flip(0).clamp_min(0)
