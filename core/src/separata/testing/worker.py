"""One of the processes that a check starts: trains its share, and the first one writes the parameters."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import torch.distributed as dist
from safetensors.torch import save_file

from separata.registry import load_object


def main(order: str) -> None:
    """Run the example that the order names."""
    given = json.loads(order)
    example = load_object(given["path"], "the plugin under check")()
    folder = Path(given["folder"])
    parameters = example.fit(folder / "checkpoint", given["steps"], given["batch_size"], False)
    if os.environ.get("RANK", "0") == "0":
        tensors = {name: tensor.detach().clone().contiguous() for name, tensor in parameters.items()}
        save_file(tensors, folder / "parameters.safetensors")
    if dist.is_available() and dist.is_initialized():
        # A process that ends while the other still receives from it closes the connection under its hands.
        dist.barrier()
        dist.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1])
