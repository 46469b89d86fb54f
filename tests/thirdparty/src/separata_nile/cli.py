"""The verbs of nile; what is heavy is imported inside them."""

from __future__ import annotations

from separata import verbs

from .config import NileConfig

app = verbs.app("The flow of the Nile, and what was built to hold it.")


@app.command()
@verbs.configured(NileConfig)
def inspect(*, config: verbs.Resolved[NileConfig], json: verbs.Json = False) -> None:
    """Show the settings in force and where each comes from.

    Example: separata nile inspect --strength 0.25
    """
    rows = [
        {"setting": name, "value": getattr(config.value, name), "from": source}
        for name, source in config.provenance.items()
    ]
    verbs.show(rows, json=json)
