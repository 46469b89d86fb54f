"""What is declared."""

import subprocess
import sys

from separata_mixfp4 import _plugin


def test_declaring_imports_nothing_heavy():
    code = (
        "import sys, separata_mixfp4._plugin as p; list(p.separata_offers()); list(p.separata_claims());"
        "assert not {'torch', 'numpy', 'transformers', 'typer'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_every_method_has_a_twin_in_float64():
    kernels = [offer for offer in _plugin.separata_offers() if offer.kind == "kernel"]
    assert [offer.name for offer in kernels] == ["mixfp4", "nvfp4", "nvint4", "fouroversix"]
    assert all(offer.reference for offer in kernels)
