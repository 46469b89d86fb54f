"""MoDEX on texts: a transformers model for sequence classification with the three heads, in scikit-learn's habits."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from separata import artifacts
from separata.errors import PackageMissing

from .errors import InvalidSetting, UnreadableTable
from .head import Evidence, MoDEXNetwork, modexify
from .saving import load_network, save_network
from .tuning import MoDEXTrainer, TuneConfig, Tuned
from .verdicts import Courtroom

if TYPE_CHECKING:
    from separata import Placement

TOKENIZER = "tokenizer"
ROWS = 32


class MoDEXTextClassifier(Courtroom, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A text classifier that says how sure it is, and why, fine-tuned from a pretrained model.

    Args:
        model: A Hugging Face folder or hub id of an encoder, or of a causal decoder; only safetensors are read.
        config: Settings of the training.
        length: Most tokens of a text; what follows is cut off.
        classes: All classes, also those no row has; by default those of the rows.
        random_state: Seed, or numpy's RandomState.

    Attributes:
        network_: The trained network.
        tuned_: What its training reports.
        classes_: The classes, sorted.
    """

    network_: MoDEXNetwork
    tuned_: Tuned

    def __init__(
        self,
        model: str | Path,
        *,
        config: TuneConfig | None = None,
        length: int = 128,
        classes: Any = None,
        random_state: Any = None,
    ) -> None:
        self.model = model
        self.config = config
        self.length = length
        self.classes = classes
        self.random_state = random_state

    def fit(self, X: Sequence[str], y: Any, *, placement: Placement | None = None) -> Self:
        """Fine-tune on texts and one class each.

        Args:
            X: Texts, N of them.
            y: Labels, ``(N,)``.
            placement: Where the work runs, as for ``MoDEXTrainer``.

        Raises:
            InvalidLabels: If there is one class only, or a label outside ``classes``.
            InvalidSetting: If texts and labels differ in number, or transformers can't build the model.
            PackageMissing: If transformers is not installed.

        Warns:
            AbsentClass: If a class of ``classes`` has no text.
        """
        texts, labels = _texts(X), np.asarray(y)
        if labels.shape != (len(texts),):
            raise InvalidSetting(
                f"{len(texts)} texts and labels of shape {labels.shape}", "give one label a text"
            )
        codes = self._learn_classes(labels)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            model, self._tokenizer = _pretrained(self.model, len(self.classes_))
            self.network_ = modexify(model)
        trainer = MoDEXTrainer(self.config, seed=seed, collate=self._batch)
        rows: Any = list(zip(texts, codes.tolist(), strict=True))
        self.tuned_ = trainer.fit(self.network_, rows, placement=placement)
        return self

    def save(self, folder: Path | str) -> None:
        """Write network, tokenizer and classes into a folder, as safetensors and JSON."""
        check_is_fitted(self)
        kept = {"classes": self.classes_.tolist(), "length": self.length}
        save_network(self.network_, folder, extra=kept)
        self._tokenizer.save_pretrained(Path(folder) / TOKENIZER)

    @classmethod
    def load(cls, folder: Path | str) -> Self:
        """Read a classifier that ``save`` wrote.

        Raises:
            InvalidSetting: If the folder holds a network without tokenizer and classes.
        """
        kept = artifacts.load(folder, slug="modex", kind="network").extra
        if "classes" not in kept:
            raise InvalidSetting(
                f"{folder} holds a network and no text classifier", "read it with load_network"
            )
        made = cls(folder, length=kept["length"])
        made.classes_ = np.array(kept["classes"])
        made.network_ = load_network(folder)
        made._tokenizer = _transformers().AutoTokenizer.from_pretrained(Path(folder) / TOKENIZER)
        return made

    def _batch(self, rows: list[tuple[str, int]]) -> tuple[dict[str, Tensor], Tensor]:
        texts, codes = zip(*rows, strict=True)
        return self._tokens(list(texts)), torch.tensor(codes)

    def _tokens(self, texts: list[str]) -> dict[str, Tensor]:
        found = self._tokenizer(
            texts, padding=True, truncation=True, max_length=self.length, return_tensors="pt"
        )
        return dict(found)

    @torch.no_grad()
    def _output(self, X: Any) -> Evidence:
        check_is_fitted(self)
        texts = _texts(X)
        device = next(self.network_.parameters()).device
        parts = []
        for begin in range(0, len(texts), ROWS):
            tokens = {name: ids.to(device) for name, ids in self._tokens(texts[begin : begin + ROWS]).items()}
            parts.append(self.network_(**tokens))
        return Evidence(*(torch.cat(side).cpu() for side in zip(*parts, strict=True)))


def _texts(X: Any) -> list[str]:
    found = list(X)
    if not found or not all(isinstance(text, str) for text in found):
        raise UnreadableTable("the column holds no texts, or not only texts", "give a column of texts")
    return found


def _pretrained(source: str | Path, classes: int) -> tuple[Any, Any]:
    """A model for sequence classification, with a new last layer unless it has one of that width, and its tokenizer."""
    package = _transformers()
    logging = package.utils.logging
    told = logging.get_verbosity()
    # That the last layer is new is no news.
    logging.set_verbosity_error()
    if not sys.stderr.isatty():
        logging.disable_progress_bar()
    try:
        tokenizer = package.AutoTokenizer.from_pretrained(source)
        model = package.AutoModelForSequenceClassification.from_pretrained(
            source, num_labels=classes, use_safetensors=True, ignore_mismatched_sizes=True
        )
    except (OSError, ValueError) as error:
        reason = " ".join(str(error).split())[:300]
        raise InvalidSetting(
            f"{source} is no model that transformers can classify with: {reason}",
            "name a folder with config.json, *.safetensors and a tokenizer",
        ) from error
    finally:
        logging.set_verbosity(told)
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    # Decoders find the last token by it.
    model.config.pad_token_id = tokenizer.pad_token_id
    return model, tokenizer


def _transformers() -> Any:
    try:
        import transformers
    except ImportError as error:
        raise PackageMissing.extra("transformers", "separata-modex[llm]") from error
    return transformers
