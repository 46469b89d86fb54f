"""The words of ``separata xkv``: analyze, generate, eval."""

from __future__ import annotations

import json as jsonlib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from separata import verbs

from .config import EvaluationConfig, StudyConfig, XKVConfig

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

    from .cache import XKVCache

app = verbs.app("Compress the KV cache of a language model across its layers.")

Source = Annotated[
    str, typer.Argument(metavar="MODEL", help="A Hugging Face folder, a .gguf file, a hub id, or smollm2.")
]
Text = Annotated[
    str, typer.Option("--text", help="A .txt, .md, .jsonl or .gz file, or python-topics or shakespeare.")
]
Device = Annotated[str, typer.Option("--device", help="cpu, cuda, cuda:1, ..., or auto for all of them.")]
Precision = Annotated[str, typer.Option("--dtype", help="float32, bfloat16 or float16.")]


@app.command()
@verbs.configured(StudyConfig)
def analyze(
    model: Source,
    *,
    config: verbs.Resolved[StudyConfig],
    text: Text = "python-topics",
    out: Annotated[
        Path | None, typer.Option("--out", help="Write analysis.json and the figures here.")
    ] = None,
    plots: Annotated[bool, typer.Option(help="Draw the figures (needs matplotlib).")] = True,
    device: Device = "cpu",
    dtype: Precision = "float32",
    json: verbs.Json = False,
) -> None:
    """Measure how alike the layers' keys and values are, and what compressing them together would lose.

    Example: separata xkv analyze smollm2 --text prose.txt --out study
    """
    from separata.files import atomic_folder

    from .analysis import CrossLayerCKA

    settings = config.value
    language_model, tokenizer = _loaded(model, device, dtype)
    cache = _read(language_model, tokenizer, text, settings.tokens)
    study = CrossLayerCKA(
        language_model,
        energy=settings.energy,
        threshold=settings.threshold,
        windows=settings.windows,
        ratios=settings.ratios,
    ).fit(cache)
    if out is not None:
        with atomic_folder(out) as folder:
            (folder / "analysis.json").write_text(jsonlib.dumps(study.as_dict(), indent=2) + "\n", "utf-8")
            if plots:
                from . import plots as figures

                figures.save(study, folder)
    if json:
        verbs.show(study.as_dict(), json=True)
        return
    verbs.show(_layer_rows(study), title=f"Layers, from {study.tokens_} tokens")
    verbs.show(_error_rows(study), title="Relative squared error at equal bytes")
    verbs.show(_group_rows(study), title="Suggested groups")


@app.command()
@verbs.configured(XKVConfig)
def generate(
    model: Source,
    *,
    config: verbs.Resolved[XKVConfig],
    prompt: Annotated[str, typer.Option("--prompt", help="The prompt, or what follows a loaded one.")] = "",
    prompt_file: Annotated[
        Path | None, typer.Option("--prompt-file", help="Read the prompt from a file.")
    ] = None,
    max_new_tokens: Annotated[
        int, typer.Option("--max-new-tokens", min=1, help="Most tokens to generate.")
    ] = 64,
    save_cache: Annotated[
        Path | None, typer.Option("--save-cache", help="Keep the compressed prompt in this folder.")
    ] = None,
    load_cache: Annotated[
        Path | None,
        typer.Option("--load-cache", help="Go on from a prompt kept in this folder, with its settings."),
    ] = None,
    device: Device = "cpu",
    dtype: Precision = "float32",
    json: verbs.Json = False,
) -> None:
    """Generate greedily from a prompt whose cache is compressed, and say what that saves.

    Example: separata xkv generate smollm2 --prompt-file report.txt --ratio 8 --save-cache report-cache
    """
    from .cache import XKVCache

    written = _written(prompt, prompt_file)
    language_model, tokenizer = _loaded(model, device, dtype)
    encoded: Any = tokenizer(written, return_tensors="pt", verbose=False)
    if load_cache is None:
        cache = XKVCache(language_model, config.value)
    else:
        cache = XKVCache.load(load_cache, language_model, device=language_model.device)
    read = cache.get_seq_length() + encoded.input_ids.shape[1]
    new = _generated(language_model, cache, encoded.input_ids, max_new_tokens)
    completion, figures = tokenizer.decode(new, skip_special_tokens=True), _figures(cache, read, len(new))
    if save_cache is not None:
        # What was generated is exact and last, so that cropping it leaves the prompt as it was compressed.
        cache.crop(read - cache.get_seq_length())
        cache.save(save_cache)
    if json:
        verbs.show({"text": completion, **figures}, json=True)
        return
    typer.echo(completion)
    verbs.show({name.replace("_", " "): figure for name, figure in figures.items()}, title="Cache")


@app.command(name="eval")
@verbs.configured(EvaluationConfig)
def evaluate(
    model: Source,
    *,
    config: verbs.Resolved[EvaluationConfig],
    text: Text = "python-topics",
    device: Device = "cpu",
    dtype: Precision = "float32",
    json: verbs.Json = False,
    seed: verbs.Seed = 0,
) -> None:
    """Score compressed caches against the exact one: divergence, likelihood, bytes, and needles found.

    Example: separata xkv eval smollm2 --text prose.txt --ratio 2,4,8 --window 1,2,4 --needles 5
    """
    from contextlib import nullcontext

    from separata_kit_llm import read_text

    from . import evaluation
    from .attention import attention_of

    settings = config.value
    language_model, tokenizer = _loaded(model, device, dtype)
    caches = evaluation.candidates(
        language_model,
        ratios=settings.ratio,
        windows=settings.window,
        peers=settings.peers,
        mode=settings.mode,
        budget=settings.budget,
    )
    selective = settings.mode != "dense"
    with attention_of(language_model) if selective else nullcontext():
        rows = evaluation.evaluate(
            language_model,
            tokenizer,
            read_text(text),
            caches,
            prompt_tokens=settings.prompt_tokens,
            continuation_tokens=settings.continuation_tokens,
            passages=settings.passages,
            needles=settings.needles,
            step=1 if selective else None,
            seed=seed,
        )
    verbs.show(rows, json=json, title=f"Prompts of {settings.prompt_tokens} tokens")


def _loaded(source: str, device: str, dtype: str) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    from separata_kit_llm import load

    return load(source, device=device, dtype=dtype)


def _read(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, text: str, tokens: int) -> Any:
    """The exact cache of a text's first tokens."""
    from separata_kit_llm import read_text

    from .evaluation import passages_of, prefill

    return prefill(model, next(passages_of(read_text(text), tokenizer, tokens, 0)).prompt)


def _written(prompt: str, prompt_file: Path | None) -> str:
    from separata_kit_llm import read_text

    from .errors import PromptMissing

    written = prompt if prompt_file is None else read_text(prompt_file) + prompt
    if not written:
        raise PromptMissing("there is no prompt", "give --prompt or --prompt-file")
    return written


def _figures(cache: XKVCache, read: int, new: int) -> dict[str, Any]:
    return {
        "prompt_tokens": read,
        "compressed_tokens": cache.prompt_length,
        "new_tokens": new,
        "cache_bytes": cache.nbytes(),
        "exact_cache_bytes": cache.exact_nbytes(),
        "ratio": cache.exact_nbytes() / cache.nbytes(),
    }


def _generated(model: PreTrainedModel, cache: XKVCache, input_ids: Tensor, count: int) -> list[int]:
    """Tokens generated greedily behind a prompt, of which the cache may hold the first part."""
    from contextlib import nullcontext

    import torch

    from .attention import attention_of

    input_ids = input_ids.to(model.device)
    # The mask covers the tokens in the cache too; from it transformers knows that the ids are only the new ones.
    mask = input_ids.new_ones(1, cache.get_seq_length() + input_ids.shape[1])
    call: Any = model.generate
    with torch.no_grad(), nullcontext() if cache.settings.mode == "dense" else attention_of(model):
        found = call(
            input_ids=input_ids, attention_mask=mask, cache=cache, max_new_tokens=count, do_sample=False
        )
    tokens: list[int] = found[0, input_ids.shape[1] :].tolist()
    return tokens


def _layer_rows(study: Any) -> list[dict[str, Any]]:
    last = len(study.layers_) - 1
    return [
        {
            "layer": layer,
            "key CKA with next": study.key_cka_[slot, slot + 1] if slot < last else None,
            "value CKA with next": study.value_cka_[slot, slot + 1] if slot < last else None,
            "key cosine": study.key_cosine_[slot, slot + 1] if slot < last else None,
            "value cosine": study.value_cosine_[slot, slot + 1] if slot < last else None,
            "key rank": int(study.key_rank_[slot]),
            "value rank": int(study.value_rank_[slot]),
        }
        for slot, layer in enumerate(study.layers_)
    ]


def _error_rows(study: Any) -> list[dict[str, Any]]:
    return [
        {
            "layers a group": size,
            **{
                f"keys at {ratio:g}x": study.key_error_[row, column]
                for column, ratio in enumerate(study.ratios)
            },
            **{
                f"values at {ratio:g}x": study.value_error_[row, column]
                for column, ratio in enumerate(study.ratios)
            },
        }
        for row, size in enumerate(study.windows)
    ]


def _group_rows(study: Any) -> list[dict[str, Any]]:
    kept = f"{study.energy:.0%}"
    return [
        {
            "layers": ", ".join(map(str, group)),
            f"key rank at {kept}": rank_key,
            f"value rank at {kept}": rank_value,
        }
        for group, (rank_key, rank_value) in zip(study.groups_, study.ranks_, strict=True)
    ]
