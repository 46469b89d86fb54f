"""Completing a batch of prompts with the routing in place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from separata_kit_llm import read_text
from separata_kit_llm.text import FIELDS, records

from .config import OEAConfig
from .errors import PromptMissing
from .patching import ExpertActivation, patch_moe


def read_prompts(path: Path) -> list[str]:
    """The lines of a text file that are not empty, or a field of each object of a JSONL file.

    Raises:
        PromptMissing: If an object has none of the fields text, content, input and prompt.
    """
    if ".jsonl" not in path.suffixes:
        return [line for line in read_text(path).splitlines() if line.strip()]
    found = []
    for number, record in enumerate(records(path), 1):
        name = next((name for name in FIELDS if isinstance(record.get(name), str)), None)
        if name is None:
            raise PromptMissing(
                f"{path}, object {number}, has no prompt", f"name it one of {', '.join(FIELDS)}"
            )
        found.append(str(record[name]))
    return found


def complete(
    model: Any, tokenizer: Any, prompts: list[str], config: OEAConfig, max_new_tokens: int
) -> tuple[list[str], ExpertActivation]:
    """Greedy completions of prompts of different lengths in one batch, and the routing's statistics.

    Rows are padded on the left and masked; a row that has ended loads no experts from then on.

    Raises:
        PromptMissing: If there is no prompt, or an empty one.
    """
    if not prompts or not all(prompts):
        raise PromptMissing("there is no prompt, or an empty one", "give --prompt or --prompts")
    rows = [tokenizer(prompt, verbose=False).input_ids for prompt in prompts]
    width = max(map(len, rows))
    padding = next((one for one in (tokenizer.pad_token_id, tokenizer.eos_token_id) if one is not None), 0)
    ids = torch.tensor([[padding] * (width - len(row)) + row for row in rows], device=model.device)
    mask = torch.tensor([[0] * (width - len(row)) + [1] * len(row) for row in rows], device=model.device)
    with torch.no_grad(), patch_moe(model, config) as activation:
        found = model.generate(
            input_ids=ids, attention_mask=mask, max_new_tokens=max_new_tokens, do_sample=False
        )
    texts = [tokenizer.decode(row, skip_special_tokens=True) for row in found[:, width:]]
    return texts, activation
