"""The words of ``separata parpic``: cluster, sweep, plot, score."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from separata import verbs

if TYPE_CHECKING:
    from .clustering import ParPIC
    from .graphs import Digraph

app = verbs.app("Cluster the vertices of a directed graph by diffusion, without eigenvectors.")

Graph = Annotated[
    str, typer.Argument(help="Edges (.csv .tsv .parquet .txt), .mtx, .graphml, .npz, .gt, or polblogs.")
]
Source = Annotated[str | None, typer.Option(help="Column of the sources. [default: source, or the first]")]
Target = Annotated[str | None, typer.Option(help="Column of the targets. [default: target, or the second]")]
Weight = Annotated[str | None, typer.Option(help="Column of the weights. [default: weight, or 1 each]")]
Clusters = Annotated[int, typer.Option("--k", min=1, help="Clusters.")]
Gamma = Annotated[
    float, typer.Option(help="Share of in-degrees: 0 symmetrises the graph, 1 counts only them.")
]
Time = Annotated[str, typer.Option(help="Steps of the diffusion, or knee.")]
Device = Annotated[str, typer.Option(help="Device of torch.")]
Out = Annotated[Path | None, typer.Option(help="Write vertex and cluster to this CSV file.")]


@app.command()
def cluster(
    graph: Graph,
    *,
    k: Clusters,
    source: Source = None,
    target: Target = None,
    weight: Weight = None,
    gamma: Gamma = 0.5,
    time: Time = "knee",
    device: Device = "cpu",
    out: Out = None,
    seed: verbs.Seed = 0,
    json: verbs.Json = False,
) -> None:
    """Cluster the vertices of a graph, and show each cluster's size and links.

    Example: separata parpic cluster polblogs --k 2 --out labels.csv
    """
    read = _read(graph, source, target, weight)
    model = _model(k, gamma, time, device, seed).fit(read)
    if out:
        _write_labels(model, out)
    if json:
        verbs.show(
            {
                "vertices": len(read),
                "edges": read.adjacency.nnz,
                "diffusion_time": model.diffusion_time_,
                "modularity": _modularity(read, model),
                "clusters": _clusters(read, model),
                "labels": dict(zip(map(str, model.names_), model.labels_.tolist(), strict=True)),
            },
            json=True,
        )
        return
    title = (
        f"{len(read)} vertices, {read.adjacency.nnz} edges; {model.diffusion_time_} steps, "
        f"modularity {_modularity(read, model):.3f}"
    )
    verbs.show(_clusters(read, model), title=title)


@app.command()
def sweep(
    graph: Graph,
    *,
    k: Annotated[str, typer.Option("--k", help="Numbers of clusters: 2,3,4 or 2:6.")] = "2:8",
    gamma: Annotated[
        str, typer.Option(help="Shares of in-degrees, joined by commas.")
    ] = "0.15,0.25,0.5,0.85",
    source: Source = None,
    target: Target = None,
    weight: Weight = None,
    device: Device = "cpu",
    out: Out = None,
    seed: verbs.Seed = 0,
    json: verbs.Json = False,
) -> None:
    """Choose the number of clusters and gamma by directed modularity, without labels.

    Example: separata parpic sweep polblogs --k 2:5
    """
    from .selection import sweep as run

    read = _read(graph, source, target, weight)
    numbers, gammas = _numbers(k), _floats(gamma)
    found = run(read, numbers, gammas, like=_model(2, 0.5, "knee", device, seed))
    if out:
        _write_labels(found.best, out)
    verbs.show(found.rows, json=json, title="Best first")


@app.command()
def plot(
    graph: Graph,
    *,
    k: Clusters,
    out: Annotated[Path, typer.Option(help="Write the figure here, .png, .pdf or .svg.")],
    source: Source = None,
    target: Target = None,
    weight: Weight = None,
    gamma: Gamma = 0.5,
    time: Time = "knee",
    seed: verbs.Seed = 0,
) -> None:
    """Draw the entropy with its knee, the embedding, and the flow between clusters.

    Example: separata parpic plot polblogs --k 2 --out polblogs.png
    """
    from .plots import save

    read = _read(graph, source, target, weight)
    save(_model(k, gamma, time, "cpu", seed).fit(read), read, out)
    typer.echo(f"wrote {out}", err=True)


@app.command()
def score(
    labels: Annotated[Path, typer.Argument(help="CSV with vertex and cluster, as written by cluster.")],
    *,
    truth: Annotated[Path, typer.Option(help="CSV whose first column is the vertex, the second its class.")],
    json: verbs.Json = False,
) -> None:
    """Compare clusters with known classes.

    Example: separata parpic score labels.csv --truth classes.csv
    """
    from sklearn.metrics import adjusted_mutual_info_score, adjusted_rand_score

    from .graphs import read_labels

    found, known = read_labels(labels), read_labels(truth)
    pairs = found.to_frame("found").join(known.rename("known"), how="inner").dropna()
    if pairs.empty:
        from .errors import UnreadableGraph

        raise UnreadableGraph(f"{labels} and {truth} share no vertex", "name vertices alike in both files")
    verbs.show(
        {
            "vertices": len(pairs),
            "adjusted mutual information": float(adjusted_mutual_info_score(pairs.known, pairs.found)),
            "adjusted Rand index": float(adjusted_rand_score(pairs.known, pairs.found)),
        },
        json=json,
    )


def _read(graph: str, source: str | None, target: str | None, weight: str | None) -> Digraph:
    from .graphs import read_graph

    return read_graph(graph, source=source, target=target, weight=weight)


def _model(k: int, gamma: float, time: str, device: str, seed: int) -> ParPIC:
    from .clustering import ParPIC

    steps = int(time) if time.isdigit() else time
    return ParPIC(k, gamma=gamma, time=steps, device=device, random_state=seed)


def _modularity(graph: Digraph, model: ParPIC) -> float:
    from .quality import directed_modularity

    return directed_modularity(graph, model.labels_)


def _clusters(graph: Digraph, model: ParPIC) -> list[dict[str, Any]]:
    import numpy as np

    from .quality import block_flow

    flow, names = block_flow(graph, model.labels_)
    return [
        {
            "cluster": int(name),
            "vertices": int(np.sum(model.labels_ == name)),
            "weight inside": float(flow[row, row]),
            "weight out": float(flow[row].sum() - flow[row, row]),
            "weight in": float(flow[:, row].sum() - flow[row, row]),
        }
        for row, name in enumerate(names)
    ]


def _write_labels(model: ParPIC, out: Path) -> None:
    import pandas as pd

    from separata.files import atomic_file

    with atomic_file(out) as temporary:
        pd.DataFrame({"vertex": list(model.names_), "cluster": model.labels_}).to_csv(temporary, index=False)


def _numbers(text: str) -> list[int]:
    from .errors import InvalidSetting

    first, colon, last = text.partition(":")
    try:
        return list(range(int(first), int(last) + 1)) if colon else [int(part) for part in text.split(",")]
    except ValueError:
        raise InvalidSetting(f"--k is {text!r}", "give 2,3,4 or 2:6") from None


def _floats(text: str) -> list[float]:
    from .errors import InvalidSetting

    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise InvalidSetting(f"--gamma is {text!r}", "give numbers joined by commas") from None
