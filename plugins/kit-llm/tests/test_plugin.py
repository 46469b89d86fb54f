from __future__ import annotations

import subprocess
import sys

from separata_kit_llm import _plugin


def test_inputs_name_their_licence_and_hash() -> None:
    found = list(_plugin.separata_inputs())
    assert [record.name for record in found] == ["smollm2", "shakespeare"]
    assert all(record.licence and len(record.sha256) == 64 for record in found)


def test_declaring_imports_no_library() -> None:
    code = (
        "import sys, separata_kit_llm._plugin; print({'torch', 'transformers', 'numpy'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
