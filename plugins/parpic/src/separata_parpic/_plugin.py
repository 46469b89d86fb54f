"""What ParPIC declares: its paper, offers, command, claims, benchmarks and inputs, as names and strings."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from separata import Benchmark, Claim, Command, Input, Offer, Paper, hookimpl

DATA = Path(__file__).with_name("data")


@hookimpl
def separata_paper() -> Paper:
    """Return the paper."""
    return Paper(
        "Parametrized Power-Iteration Clustering for Directed Graphs",
        venue="ICML 2026",
        arxiv="2210.00310",
        url="https://arxiv.org/abs/2210.00310",
        code="https://github.com/Gwendal-Debaussart/parpic",
    )


@hookimpl
def separata_offers() -> Iterable[Offer]:
    """Yield the offers."""
    yield Offer(
        "estimator",
        "parpic",
        "separata_parpic.clustering:ParPIC",
        example="separata_parpic.examples:clustering",
        summary="Clusters of a directed graph by diffusion, in time linear in its edges.",
        tags={"graph clustering", "directed graphs", "community detection", "power iteration"},
    )
    kernels = {
        "reversible-operator": (
            "operators:reversible_operator",
            "A reversible walk on a directed graph, with direction as a vertex measure.",
        ),
        "diffuse": ("diffusion:diffuse", "Signals on the vertices of a graph after some steps of a walk."),
        "vertex-measure": (
            "measures:vertex_measure",
            "A mix of in- and out-degrees as a probability measure.",
        ),
    }
    for name, (found, summary) in kernels.items():
        function = name.replace("-", "_")
        yield Offer(
            "kernel",
            name,
            f"separata_parpic.{found}",
            reference=f"separata_parpic.references:{function}_reference",
            example=f"separata_parpic.examples:{function}",
            summary=summary,
            tags={"directed graphs", "random walks", "diffusion"},
        )


@hookimpl
def separata_commands() -> Iterable[Command]:
    """Yield the command."""
    yield Command(
        "separata_parpic.cli:app", summary="Cluster the vertices of a directed graph, without eigenvectors."
    )


@hookimpl
def separata_claims() -> Iterable[Claim]:
    """Yield the claims."""
    for name, shape in (("chain", "a chain of blocks"), ("core-periphery", "a core and its periphery")):
        yield Claim(
            name,
            says=f"On {shape} its AMI is at least 0.9, and 0.35 above spectral clustering of the symmetrised graph.",
            paper="The same block model with 1500 to 3900 vertices: the best of all methods compared.",
            proof=f"separata_parpic.claims:{name.replace('-', '_')}",
        )
    yield Claim(
        "undirected-structure",
        says="Where direction tells nothing its AMI is at least 0.99, as spectral clustering's.",
        paper="The baseline block model, 3 x 400: solved by all methods compared.",
        proof="separata_parpic.claims:undirected_structure",
    )
    yield Claim(
        "real-digraphs",
        says="On three real directed graphs its mean AMI is above spectral clustering's on the symmetrised graph.",
        paper="Best or second best on most real graphs.",
        proof="separata_parpic.claims:real_digraphs",
    )
    yield Claim(
        "neighbour-graphs",
        says="On neighbour graphs of four data sets its mean AMI is at least that of spectral clustering.",
        paper="Best mean rank on neighbour graphs of such data sets.",
        proof="separata_parpic.claims:neighbour_graphs",
    )
    yield Claim(
        "linear-growth",
        says="From 60,000 to 1.2 million edges its time grows at most by edges^0.1 more than a sparse product's.",
        paper="Linear in the number of edges.",
        proof="separata_parpic.claims:linear_growth",
    )
    yield Claim(
        "faster-than-eigenvectors",
        says="At 5000 vertices the embedding takes at most a hundredth of a dense eigendecomposition's time.",
        paper="No eigenvectors are computed; no figure.",
        proof="separata_parpic.claims:faster_than_eigenvectors",
    )


@hookimpl
def separata_benchmarks() -> Iterable[Benchmark]:
    """Yield the benchmarks."""
    yield Benchmark(
        "embedding",
        says="Diffusion time and embedding of a block model with ten blocks and ten edges a vertex.",
        peer="scipy's eigsh, ten eigenvectors of the same operator",
        run="separata_parpic.benchmarks:embedding",
    )
    yield Benchmark(
        "clustering",
        says="Clusters of a block model with ten blocks and ten edges a vertex.",
        peer="scikit-learn's SpectralClustering of the symmetrised graph",
        run="separata_parpic.benchmarks:clustering",
    )


@hookimpl
def separata_inputs() -> Iterable[Input]:
    """Yield the inputs."""
    yield Input(
        "polblogs",
        file=str(DATA / "polblogs.gt.gz"),
        licence="public domain",
        about="Links between 1490 political weblogs of 2004 and their two camps (Adamic and Glance).",
    )
    yield Input(
        "serengeti-foodweb",
        file=str(DATA / "serengeti-foodweb.gt.gz"),
        licence="public domain",
        about="Who eats whom among 161 species of the Serengeti, in 14 groups (Baskerville et al.).",
    )
    yield Input(
        "larval-connectome",
        wheel="graspologic==3.4.4",
        path="graspologic/datasets/drosophila",
        sha256="4ea5cd50f10eaff3fa90f18a8f66b1f5f42c724ac6aeb95e9f081632fc8d2d00",
        licence="MIT",
        about="Synapses between 213 neurons of a larval fly's right mushroom body, of four types (Eichler et al.).",
    )
