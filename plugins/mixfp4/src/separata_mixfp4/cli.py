"""The words of ``separata mixfp4``: quantize, report, eval."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from separata import verbs

from .config import EvaluationConfig, QuantizeConfig

app = verbs.app("Four-bit blocks that choose between a floating and a uniform grid.")

Source = Annotated[
    str, typer.Argument(metavar="MODEL", help="A Hugging Face folder, a .gguf file, a hub id, or smollm2.")
]
Text = Annotated[
    str, typer.Option("--text", help="A .txt, .md, .jsonl or .gz file, or python-topics or shakespeare.")
]


@app.command()
@verbs.configured(QuantizeConfig)
def quantize(
    model: Source,
    out: Annotated[Path, typer.Argument(metavar="OUT", help="Folder to write.")],
    *,
    config: verbs.Resolved[QuantizeConfig],
    text: Text = "python-topics",
    json: verbs.Json = False,
    seed: verbs.Seed = 0,
) -> None:
    """Quantise a model's linear layers and write packed safetensors.

    Example: separata mixfp4 quantize smollm2 smollm2-mixfp4
    """
    from separata_kit_llm import load, read_text

    from .evaluation import first_ids
    from .model import QuantizedLinear, quantize_model
    from .storage import save_model

    settings = config.value
    language_model, tokenizer = load(model)
    tokens = settings.gptq_tokens
    quantize_model(
        language_model,
        method=settings.method,
        activations=settings.activations,
        per_row=settings.per_row,
        skip=settings.skip,
        rotation=settings.rotation,
        seed=seed,
        calibration=first_ids(tokenizer, read_text(text), tokens) if tokens else None,
        pad=settings.pad,
    )
    save_model(language_model, out, tokenizer)
    layers = [layer.stored for layer in language_model.modules() if isinstance(layer, QuantizedLinear)]
    numbers, size = sum(layer.shape.numel() for layer in layers), sum(layer.nbytes for layer in layers)
    verbs.show(
        {
            "folder": str(out),
            "layers": len(layers),
            "numbers": numbers,
            "bytes": size,
            "bits_per_number": 8 * size / numbers,
            "uniform": sum(int(layer.uniform.sum()) for layer in layers)
            / sum(layer.scales.numel() for layer in layers),
            "file_bytes": (out / "model.safetensors").stat().st_size,
        },
        json=json,
        title=f"{model} in {settings.method}",
    )


@app.command()
def report(
    source: Annotated[
        str, typer.Argument(metavar="FILE", help="A .safetensors or .npy file, or a model: its weights.")
    ],
    *,
    text: Annotated[
        str,
        typer.Option(
            "--text", help="For a model: take its keys, values and layers' inputs on this text instead."
        ),
    ] = "",
    tokens: Annotated[int, typer.Option("--tokens", min=1, help="Tokens of the text.")] = 512,
    only: Annotated[str, typer.Option("--only", help="Patterns of names, joined by commas.")] = "*",
    out: Annotated[
        Path | None, typer.Option("--out", help="Write the figure here (.png, .svg or .pdf).")
    ] = None,
    group: Annotated[int, typer.Option("--group", help="Elements of a block.")] = 16,
    pad: Annotated[bool, typer.Option("--pad", help="Fill up rows that are no multiple of a block.")] = False,
    json: verbs.Json = False,
) -> None:
    """Tell for each tensor what each 4-bit method would make of it: QSNR, grids taken, crest factors.

    Example: separata mixfp4 report smollm2 --text python-topics --only keys.15,values.29 --out crest.png
    """
    from .report import CrestFactorReport
    from .sources import read_tensors

    tensors = read_tensors(source, text=text, tokens=tokens, only=only)
    fitted = CrestFactorReport(group=group, pad=pad).fit(tensors)
    if out is not None:
        from .plots import save

        save(fitted, out)
    verbs.show(fitted.rows_, json=json, title="QSNR in dB; shares of blocks; percentiles of the crest factor")


@app.command(name="eval")
@verbs.configured(EvaluationConfig)
def evaluate(
    model: Source,
    *,
    config: verbs.Resolved[EvaluationConfig],
    text: Text = "python-topics",
    device: Annotated[str, typer.Option("--device", help="cpu, cuda, cuda:1, ...")] = "cpu",
    dtype: Annotated[str, typer.Option("--dtype", help="float32, bfloat16 or float16.")] = "float32",
    json: verbs.Json = False,
) -> None:
    """Score a model on a text, as it is and with each 4-bit method in its linear layers.

    Example: separata mixfp4 eval smollm2 --methods nvfp4,mixfp4 --tokens 512
    """
    from separata_kit_llm import load, read_text

    from .evaluation import perplexities

    settings = config.value
    language_model, tokenizer = load(model, device=device, dtype=dtype)
    rows = perplexities(
        language_model,
        tokenizer,
        read_text(text),
        settings.methods,
        weights=settings.weights,
        activations=settings.activations,
        tokens=settings.tokens,
        window=settings.window,
        skip=settings.skip,
    )
    scored = list(verbs.progress(rows, "scoring", total=1 + len(settings.methods)))
    verbs.show(scored, json=json, title=f"{model} on the first {settings.tokens} tokens of {text}")
