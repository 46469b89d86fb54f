"""Files."""

import json

import pytest
import torch
from safetensors.torch import load_file, save_file

from separata_mixfp4.errors import AmbiguousScale, UnreadableFile
from separata_mixfp4.model import quantize_model
from separata_mixfp4.quantizer import quantize
from separata_mixfp4.storage import PLAIN, load_model, load_tensors, save_model, save_tensors
from separata_mixfp4.tensor import MixFP4Tensor

IDS = torch.arange(40).view(2, 20)


@pytest.mark.parametrize("options", [{}, {"per_row": True}, {"group": 32}, {"method": "nvint4"}], ids=str)
def test_stored_tensors_come_back_bit_for_bit(tensors, tmp_path, options):
    stored = quantize(tensors["mixed"], **options)
    save_tensors(tmp_path / "x.safetensors", {"x": stored, "plain": tensors["flat"]})
    found = load_tensors(tmp_path / "x.safetensors")
    assert torch.equal(found["plain"], tensors["flat"])
    for part in ("codes", "scales", "global_scale"):
        assert torch.equal(getattr(found["x"], part), getattr(stored, part))
    assert (found["x"].shape, found["x"].group) == (stored.shape, stored.group)


def test_a_padded_tensor_keeps_its_shape(tensors, tmp_path):
    save_tensors(tmp_path / "x.safetensors", {"x": quantize(tensors["mixed"][:, :90], pad=True)})
    assert load_tensors(tmp_path / "x.safetensors")["x"].shape == (8, 90)


def test_names_and_dtypes_are_those_of_compressed_tensors(tensors, tmp_path):
    save_tensors(tmp_path / "x.safetensors", {"layer": quantize(tensors["mixed"])})
    flat = load_file(tmp_path / "x.safetensors")
    assert {name: (tensor.dtype, tuple(tensor.shape)) for name, tensor in flat.items()} == {
        "layer.weight_packed": (torch.uint8, (8, 48)),
        "layer.weight_scale": (torch.float8_e4m3fn, (8, 6)),
        "layer.weight_global_scale": (torch.float32, (1,)),
    }


def plain_file(path, stored):
    save_file(
        {
            "a.weight_packed": stored.codes,
            "a.weight_scale": stored.scales.view(torch.float8_e4m3fn),
            "a.weight_global_scale": stored.global_scale.reshape(1),
        },
        path / "model.safetensors",
    )
    (path / "config.json").write_text(json.dumps({"quantization_config": {"format": PLAIN}}))
    return path / "model.safetensors"


def test_a_plain_nvfp4_file_has_no_block_on_the_uniform_grid(tensors, tmp_path):
    stored = quantize(tensors["mixed"], method="nvfp4")
    found = load_tensors(plain_file(tmp_path, stored))["a"]
    assert isinstance(found, MixFP4Tensor)
    assert not found.uniform.any()
    assert torch.equal(found.dequantize(), stored.dequantize())


def test_negative_scales_in_a_file_that_says_nvfp4_are_refused(tensors, tmp_path):
    with pytest.raises(AmbiguousScale, match="negative scales"):
        load_tensors(plain_file(tmp_path, quantize(tensors["mixed"])))


def test_a_missing_part_is_named(tensors, tmp_path):
    save_file({"a.weight_packed": torch.zeros(2, 8, dtype=torch.uint8)}, tmp_path / "x.safetensors")
    with pytest.raises(UnreadableFile, match="weight_scale"):
        load_tensors(tmp_path / "x.safetensors")


def test_what_is_no_safetensors_file_is_refused(tmp_path):
    (tmp_path / "x.safetensors").write_bytes(b"nothing")
    with pytest.raises(UnreadableFile):
        load_tensors(tmp_path / "x.safetensors")
    with pytest.raises(UnreadableFile):
        load_tensors(tmp_path / "absent.safetensors")


@pytest.mark.parametrize(
    "options", [{}, {"activations": False}, {"rotation": 16, "seed": 3, "per_row": True}], ids=str
)
def test_a_model_comes_back_with_the_same_outputs(llama, tmp_path, options):
    quantize_model(llama, **options)
    save_model(llama, tmp_path / "out")
    assert torch.equal(load_model(tmp_path / "out")(IDS).logits, llama(IDS).logits)


def test_a_model_that_is_not_quantised_is_not_written(llama, tmp_path):
    with pytest.raises(UnreadableFile):
        save_model(llama, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_another_folder_is_not_loaded(folder):
    with pytest.raises(UnreadableFile):
        load_model(folder)


def test_a_tensor_that_is_missing_is_named(llama, tmp_path):
    quantize_model(llama)
    save_model(llama, tmp_path / "out")
    tensors = load_tensors(tmp_path / "out" / "model.safetensors")
    del tensors["model.norm.weight"]
    save_tensors(tmp_path / "out" / "model.safetensors", tensors)
    with pytest.raises(UnreadableFile, match=r"model\.norm\.weight"):
        load_model(tmp_path / "out")
