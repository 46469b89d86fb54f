"""Where tensors come from."""

import numpy as np
import pytest
import torch

from separata_mixfp4.errors import NothingToQuantise, UnreadableFile
from separata_mixfp4.quantizer import quantize
from separata_mixfp4.sources import read_tensors
from separata_mixfp4.storage import save_tensors
from separata_mixfp4.tensor import MixFP4Tensor


def test_an_array_is_one_tensor(tmp_path):
    np.save(tmp_path / "x.npy", np.ones((2, 16), np.float32))
    assert read_tensors(str(tmp_path / "x.npy"))["x"].shape == (2, 16)


def test_a_safetensors_file_gives_what_is_asked_for(tensors, tmp_path):
    path = tmp_path / "x.safetensors"
    save_tensors(
        path,
        {"a.q": quantize(tensors["flat"]), "a.k": tensors["flat"], "b": tensors["heavy"], "n": torch.ones(4)},
    )
    assert set(read_tensors(str(path))) == {"a.q", "a.k", "b"}
    found = read_tensors(str(path), only="a.*")
    assert set(found) == {"a.q", "a.k"}
    assert isinstance(found["a.q"], MixFP4Tensor)
    with pytest.raises(NothingToQuantise):
        read_tensors(str(path), only="c")


def test_a_model_gives_weights_or_activations(folder, text, tmp_path):
    (tmp_path / "t.txt").write_text(text)
    assert read_tensors(str(folder), only="*.0.mlp.down_proj")["model.layers.0.mlp.down_proj"].shape == (
        32,
        48,
    )
    found = read_tensors(
        str(folder), text=str(tmp_path / "t.txt"), tokens=20, only="keys.*, *.0.mlp.down_proj"
    )
    assert {name: tuple(tensor.shape) for name, tensor in found.items()} == {
        "keys.0": (20, 16),
        "keys.1": (20, 16),
        "model.layers.0.mlp.down_proj": (20, 48),
    }


@pytest.mark.parametrize("array", [np.ones((2, 16), np.int64), np.array([object()]), np.float32(1)])
def test_arrays_that_are_no_floating_tensors_are_refused(tmp_path, array):
    np.save(tmp_path / "x.npy", array, allow_pickle=True)
    with pytest.raises(UnreadableFile):
        read_tensors(str(tmp_path / "x.npy"))
