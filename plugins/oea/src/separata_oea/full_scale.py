"""The paper's claims on its own model, for accelerators."""

from __future__ import annotations

from typing import Any

import torch

from separata.claims import Evidence, Race, Trial, at_most, race

from .config import OEAConfig
from .evaluation import rows_of
from .example_model import TEXT
from .patching import patch_moe
from .timing import prefilled

BATCH = 16


def moe_latency(trial: Trial) -> Evidence:
    """Time of all expert layers of Qwen3-30B-A3B in a decode step with k0 = 3 over the plain one, sixteen rows."""
    from separata_kit_llm import load, read_text

    model, tokenizer = load(str(trial.input("qwen3-30b-a3b")), device="auto", dtype="bfloat16")
    tokens: Any = tokenizer(read_text(TEXT), return_tensors="pt", verbose=False).input_ids[0]
    ids = rows_of(tokens, BATCH, 256).to(model.device)
    inputs: dict[str, torch.Tensor] = {}
    blocks = {
        name: block
        for name, block in model.named_modules()
        if name.endswith(".mlp") and hasattr(block, "gate")
    }
    hooks = [
        block.register_forward_pre_hook(lambda _, args, name=name: inputs.update({name: args[0].clone()}))
        for name, block in blocks.items()
    ]
    cache = prefilled(model, ids[:, :-1])
    with torch.no_grad():
        model(input_ids=ids[:, -1:], cache=cache, use_cache=True)
    for hook in hooks:
        hook.remove()

    def layers() -> None:
        for name, block in blocks.items():
            block(inputs[name])
        torch.cuda.synchronize()

    with torch.no_grad(), patch_moe(model, OEAConfig(k0=3)) as activation:

        def ours() -> None:
            with activation.step():
                layers()

        timing = race(Race(BATCH, ours, layers), rounds=20)
    return Evidence(1 / timing.ratio, at_most(0.7), "of the plain layers")


def task_accuracy(trial: Trial) -> Evidence:
    """Standard errors that Qwen3-30B-A3B loses on GSM8K with k0 = 5 of 8, by lm-eval, sixteen rows a batch."""
    import lm_eval  # type: ignore[import-not-found]
    from lm_eval.models.huggingface import HFLM  # type: ignore[import-not-found]

    folder = str(trial.input("qwen3-30b-a3b"))
    served = HFLM(pretrained=folder, dtype="bfloat16", batch_size=BATCH, parallelize=True)

    def accuracy() -> tuple[float, float]:
        found = lm_eval.simple_evaluate(model=served, tasks=["gsm8k"], random_seed=trial.seed)["results"][
            "gsm8k"
        ]
        return found["exact_match,strict-match"], found["exact_match_stderr,strict-match"]

    exact, error = accuracy()
    with patch_moe(served.model, OEAConfig(k0=5)):
        ours, _ = accuracy()
    return Evidence((exact - ours) / error, at_most(1.0), "standard errors", peers={"plain": 0.0})
