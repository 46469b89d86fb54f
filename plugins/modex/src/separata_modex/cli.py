"""The words of ``separata modex``: fit, wrap, predict, explain, ood."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from separata import verbs

if TYPE_CHECKING:
    import pandas as pd

    from .classifier import MoDEXClassifier
    from .texts import MoDEXTextClassifier

    Fitted = MoDEXClassifier | MoDEXTextClassifier

app = verbs.app("Classify rows of tables and texts, and say how sure each answer is and why.")

Model = Annotated[Path, typer.Argument(help="Folder that fit or wrap wrote.")]
Table = Annotated[Path, typer.Argument(help="CSV with a header.")]
Text = Annotated[str, typer.Option(help="Column with the texts, for what wrap wrote.")]
Target = Annotated[str, typer.Option(help="Column with the class.")]


@app.command()
def fit(
    table: Table,
    *,
    target: Target,
    out: Annotated[Path, typer.Option(help="Folder for the trained classifier.")],
    epochs: Annotated[int, typer.Option(min=1, help="The most passes over the data.")] = 60,
    seed: verbs.Seed = 0,
    json: verbs.Json = False,
) -> None:
    """Train a classifier on a table, all of whose columns but the target are numbers.

    Example: separata modex fit train.csv --target label --out model
    """
    from .classifier import MoDEXClassifier

    X, y = _split(_read(table), target, table)
    model = MoDEXClassifier(epochs=epochs, random_state=seed).fit(X, y)
    model.save(out)
    shown = {"rows": len(X), "classes": len(model.classes_), "best epoch": model.n_iter_, "folder": str(out)}
    verbs.show(shown, json=json)


@app.command()
def wrap(
    model: Annotated[str, typer.Argument(help="Hugging Face folder or hub id, as safetensors.")],
    table: Table,
    *,
    target: Target,
    out: Annotated[Path, typer.Option(help="Folder for the trained classifier.")],
    text: Text = "text",
    steps: Annotated[int, typer.Option(min=1, help="Optimizer steps.")] = 300,
    batch: Annotated[int, typer.Option(min=1, help="Texts a step.")] = 16,
    head_rate: Annotated[float, typer.Option(help="Learning rate of the new heads.")] = 5e-4,
    backbone_rate: Annotated[
        float, typer.Option(help="Of the model below them; 0 leaves it as it is.")
    ] = 2e-5,
    length: Annotated[int, typer.Option(min=2, help="Most tokens of a text.")] = 128,
    ddp: Annotated[
        bool, typer.Option("--ddp", help="Share each batch with the other processes that torchrun started.")
    ] = False,
    seed: verbs.Seed = 0,
    json: verbs.Json = False,
) -> None:
    """Give a pretrained text model the three heads, and fine-tune it on a table of texts.

    Example: separata modex wrap my-bert train.csv --text text --target intent --out intents
    """
    from separata import Placement

    from .texts import MoDEXTextClassifier
    from .tuning import TuneConfig

    placement = Placement(strategy="ddp", seed=seed) if ddp else None
    config = TuneConfig(steps=steps, batch=batch, head_rate=head_rate, backbone_rate=backbone_rate)
    rows = _read(table)
    texts, labels = _column(rows, text, table), _column(rows, target, table)
    found = MoDEXTextClassifier(model, config=config, length=length, random_state=seed)
    found.fit(texts.astype(str).tolist(), labels.to_numpy(), placement=placement)
    first = placement is None or placement.accelerator().is_main_process
    if first:
        found.save(out)
        shown = {
            "texts": len(rows),
            "classes": len(found.classes_),
            "best step": found.tuned_.best_step,
            "held-out loss": found.tuned_.held_out,
            "folder": str(out),
        }
        verbs.show(shown, json=json)
    if placement is not None:
        placement.accelerator().wait_for_everyone()
        placement.accelerator().end_training()


@app.command()
def predict(
    model: Model,
    table: Table,
    *,
    text: Text = "text",
    out: Annotated[Path | None, typer.Option(help="Write the answers to this CSV.")] = None,
    json: verbs.Json = False,
) -> None:
    """Classify rows, each answer with its uncertainty.

    Example: separata modex predict model new.csv --out answers.csv
    """
    from separata.files import atomic_file

    found, rows = _load(model), _read(table)
    X = _features(found, rows, table, text)
    answers = found.predict_uncertainty(X)
    answers.insert(0, "class", found.predict(X))
    if out:
        with atomic_file(out) as partial:
            answers.to_csv(partial, index=False)
        typer.echo(f"wrote {out}", err=True)
        return
    verbs.show(answers.to_dict("records"), json=json)


@app.command()
def explain(
    model: Model,
    table: Table,
    *,
    row: Annotated[int, typer.Option(min=0, help="Number of the row, from 0.")] = 0,
    text: Text = "text",
    json: verbs.Json = False,
) -> None:
    """Show the courtroom of one row: evidence, each class's advocate, and the verdict.

    Example: separata modex explain model new.csv --row 3
    """
    from .errors import UnreadableTable

    found, rows = _load(model), _read(table)
    if row >= len(rows):
        raise UnreadableTable(f"{table} has {len(rows)} rows, and no row {row}", "count from 0")
    X = _features(found, rows.iloc[[row]], table, text)
    said = found.evidence(X)
    columns = {
        "evidence": said.concentration,
        "advocacy": said.advocacy,
        "plausibility": said.plausibility,
        "verdict": said.law.mean,
    }
    shown = [
        {"class": str(name)} | {key: float(value[0, code]) for key, value in columns.items()}
        for code, name in enumerate(found.classes_)
    ]
    doubt = found.predict_uncertainty(X).iloc[0]
    title = f"{found.predict(X)[0]}; uncertainty between advocates {doubt['inter']:.3g}, within {doubt['intra']:.3g}"
    verbs.show(shown, json=json, title=title)


@app.command()
def ood(
    model: Model,
    *,
    known: Annotated[Path, typer.Option("--id", help="CSV of known kind.")],
    strange: Annotated[Path, typer.Option("--ood", help="CSV of another kind.")],
    target: Annotated[str | None, typer.Option(help="Class column of --id; gives calibration too.")] = None,
    text: Text = "text",
    plot: Annotated[Path | None, typer.Option(help="Write a figure here, .png, .pdf or .svg.")] = None,
    json: verbs.Json = False,
) -> None:
    """Measure how well uncertainty tells strange rows from known ones.

    Example: separata modex ood model --id test.csv --ood other.csv --target label
    """
    from .metrics import calibration, separation

    found, table = _load(model), _read(known)
    X = _features(found, table, known, text)
    others = _features(found, _read(strange), strange, text)
    frames = found.predict_uncertainty(X), found.predict_uncertainty(others)
    shown = separation(frames[0]["epistemic"], frames[1]["epistemic"])
    if target:
        shown |= calibration(found.predict_proba(X), found.codes(_column(table, target, known).to_numpy()))
    if plot:
        from .plots import save

        save(*frames, plot)
        typer.echo(f"wrote {plot}", err=True)
    verbs.show(shown, json=json)


def _load(folder: Path) -> Fitted:
    """What fit or wrap wrote."""
    from .classifier import MoDEXClassifier

    if (folder / "tokenizer").is_dir():
        from .texts import MoDEXTextClassifier

        return MoDEXTextClassifier.load(folder)
    return MoDEXClassifier.load(folder)


def _read(path: Path) -> pd.DataFrame:
    import pandas as pd

    from .errors import UnreadableTable

    try:
        return pd.read_csv(path)
    except (OSError, ValueError) as error:
        raise UnreadableTable(f"{path} can't be read: {error}", "give a CSV file with a header") from error


def _split(table: pd.DataFrame, target: str, path: Path) -> tuple[Any, Any]:
    labels = _column(table, target, path).to_numpy()
    return table.drop(columns=target), labels


def _column(table: pd.DataFrame, name: str, path: Path) -> pd.Series[Any]:
    from .errors import UnreadableTable

    if name not in table:
        raise UnreadableTable(f"{path} has no column {name}", f"it has {', '.join(map(str, table.columns))}")
    return table[name]


def _features(model: Fitted, table: pd.DataFrame, path: Path, text: str) -> Any:
    from .classifier import MoDEXClassifier
    from .errors import UnreadableTable

    if not isinstance(model, MoDEXClassifier):
        return _column(table, text, path).astype(str).tolist()
    # Without names it was trained on an array, and takes the columns as they come.
    names = list(getattr(model, "feature_names_in_", table.columns))
    missing = [name for name in names if name not in table]
    if missing:
        raise UnreadableTable(f"{path} lacks {', '.join(missing)}", "give the columns of the training table")
    return table[names]
