"""What is declared exists, and the public names lead to it."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module

import separata_xkv
from separata_xkv import _plugin

HEAVY = ("torch", "numpy", "transformers", "typer", "matplotlib")


def test_public_names_lead_to_their_objects() -> None:
    assert {"XKVCache", "XKVConfig", "CrossLayerCKA", "attention_of", "crosslayer_svd"} <= set(
        separata_xkv.__all__
    )
    for name in separata_xkv.__all__:
        assert getattr(separata_xkv, name) is not None


def test_offers_and_their_examples_exist() -> None:
    paths = [
        path
        for offer in _plugin.separata_offers()
        for path in (offer.object, offer.reference, offer.example)
        if path is not None
    ]
    for path in paths:
        module, _, name = path.partition(":")
        assert callable(getattr(import_module(module), name))


def test_declaring_imports_nothing_heavy() -> None:
    code = f"import sys, separata_xkv._plugin; print([m for m in {HEAVY!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
