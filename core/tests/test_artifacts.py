"""Artifacts: tensors and settings that come back as they were, or an error that says why not."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
from pathlib import Path
from typing import Any

import pytest

from separata import __version__, artifacts
from separata.errors import ArtifactError, WriteFailed

torch = pytest.importorskip("torch")
pytest.importorskip("safetensors")

DTYPES = (
    "float64 float32 float16 bfloat16 float8_e4m3fn float8_e5m2 complex64 int64 int32 int16 int8 uint8 bool"
)


def save(folder: Path, tensors: dict[str, Any] | None = None, **changes: Any) -> Path:
    fields: dict[str, Any] = {"slug": "toy", "kind": "cache", "config": {"rank": 2}, **changes}
    return artifacts.save(folder, tensors={"x": torch.zeros(3)} if tensors is None else tensors, **fields)


def load(folder: Path, **changes: Any) -> artifacts.Artifact:
    return artifacts.load(folder, **{"slug": "toy", "kind": "cache", **changes})


def edited(folder: Path, **changes: Any) -> Path:
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))
    return folder


@pytest.mark.parametrize("name", DTYPES.split())
def test_a_tensor_comes_back_bit_for_bit(name: str, tmp_path: Path) -> None:
    generator = torch.Generator().manual_seed(0)
    # Every bit pattern, NaNs too: the bytes are compared, not the numbers.
    dtype = getattr(torch, name)
    size = torch.empty((), dtype=dtype).element_size()
    raw = torch.randint(0, 256, (4, 6 * size), dtype=torch.uint8, generator=generator)
    tensor = raw.bool() if dtype is torch.bool else raw.view(dtype)
    back = load(save(tmp_path / "a", {"x": tensor})).tensors["x"]
    assert (back.dtype, back.shape) == (tensor.dtype, tensor.shape)
    assert torch.equal(back.view(torch.uint8), tensor.view(torch.uint8))


@pytest.mark.parametrize(
    "shape", [(), (0,), (3, 0, 2), (1, 1, 1, 1, 1)], ids=["scalar", "empty", "empty matrix", "deep"]
)
def test_a_tensor_of_any_shape_comes_back(shape: tuple[int, ...], tmp_path: Path) -> None:
    assert load(save(tmp_path / "a", {"x": torch.ones(shape)})).tensors["x"].shape == shape


def test_a_view_is_saved_as_what_it_shows(tmp_path: Path) -> None:
    whole = torch.arange(12.0).reshape(3, 4)
    views = {"transposed": whole.T, "strided": whole[:, ::2], "expanded": whole[:1].expand(5, 4)}
    back = load(save(tmp_path / "a", views)).tensors
    assert all(torch.equal(back[name], view) for name, view in views.items())


def test_tensors_that_share_storage_come_back_each_on_its_own(tmp_path: Path) -> None:
    whole = torch.arange(6.0)
    back = load(save(tmp_path / "a", {"whole": whole, "tied": whole, "part": whole[2:4]})).tensors
    back["part"].zero_()
    assert torch.equal(back["whole"], whole)
    assert torch.equal(back["tied"], whole)


def test_a_view_of_a_large_tensor_takes_no_more_room_than_it_shows(tmp_path: Path) -> None:
    folder = save(tmp_path / "a", {"x": torch.zeros(1_000_000)[:10]})
    assert (folder / "tensors.safetensors").stat().st_size < 1000


def test_a_parameter_comes_back_as_a_plain_tensor(tmp_path: Path) -> None:
    back = load(save(tmp_path / "a", {"x": torch.nn.Parameter(torch.ones(2))})).tensors["x"]
    assert not back.requires_grad


def test_no_tensors_are_an_artifact_too(tmp_path: Path) -> None:
    assert load(save(tmp_path / "a", {})).tensors == {}


def test_settings_extras_and_versions_come_back(tmp_path: Path) -> None:
    back = load(
        save(tmp_path / "a", config={"rank": 2, "mode": "fast"}, extra={"provenance": {"rank": "default"}})
    )
    assert back.config == {"rank": 2, "mode": "fast"}
    assert back.extra == {"provenance": {"rank": "default"}}
    assert back.versions["separata"] == __version__
    assert back.versions["torch"] == torch.__version__


def test_the_file_of_tensors_can_be_read_by_whoever_reads_the_settings(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        folder = save(tmp_path / "a")
    finally:
        os.umask(before)
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o644}


@pytest.mark.parametrize("changes", [{"slug": "game"}, {"kind": "model"}])
def test_what_belongs_to_another_plugin_or_is_another_kind_is_refused(
    changes: dict[str, str], tmp_path: Path
) -> None:
    folder = save(tmp_path / "a")
    with pytest.raises(ArtifactError, match="holds a cache of toy"):
        load(folder, **changes)


def test_a_newer_format_is_refused_with_the_way_to_read_it(tmp_path: Path) -> None:
    folder = edited(save(tmp_path / "a"), format=artifacts.FORMAT + 1)
    with pytest.raises(
        ArtifactError, match=r"has format 2; this version reads up to 1\n.*--upgrade separata"
    ):
        load(folder)


@pytest.mark.parametrize("content", ["", "{", "[]", "3", '{"model_type": "llama"}', "\x00"])
def test_settings_that_separata_did_not_write_are_refused(content: str, tmp_path: Path) -> None:
    folder = save(tmp_path / "a")
    (folder / "config.json").write_text(content)
    with pytest.raises(ArtifactError, match=r"config\.json"):
        load(folder)


@pytest.mark.parametrize("field", ["format", "slug", "kind", "config", "extra", "versions"])
def test_settings_that_lack_a_part_are_refused(field: str, tmp_path: Path) -> None:
    path = save(tmp_path / "a") / "config.json"
    described = json.loads(path.read_text())
    del described[field]
    path.write_text(json.dumps(described))
    with pytest.raises(ArtifactError, match="was not written by separata"):
        load(tmp_path / "a")


def test_a_format_that_is_no_number_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match="was not written by separata"):
        load(edited(save(tmp_path / "a"), format="1"))


@pytest.mark.parametrize("keep", [0, 4, 8, 40])
def test_cut_off_tensors_are_refused(keep: int, tmp_path: Path) -> None:
    path = save(tmp_path / "a") / "tensors.safetensors"
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(ArtifactError, match="can't be read"):
        load(tmp_path / "a")


@pytest.mark.parametrize("name", ["config.json", "tensors.safetensors"])
def test_a_missing_part_is_named(name: str, tmp_path: Path) -> None:
    (save(tmp_path / "a") / name).unlink()
    with pytest.raises(ArtifactError, match=name):
        load(tmp_path / "a")


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match="can't be read"):
        load(tmp_path / "none")


class Trap:
    """Unpickled, it leaves a trace."""

    def __init__(self, trace: Path) -> None:
        self.trace = trace

    def __reduce__(self) -> tuple[Any, ...]:
        return (Path.touch, (self.trace,))


@pytest.mark.parametrize("name", ["pytorch_model.bin", "tensors.pkl", "tensors.pt", "tensors.safetensors"])
def test_a_pickle_is_never_read_whatever_it_is_called(name: str, tmp_path: Path) -> None:
    folder, trace = save(tmp_path / "a"), tmp_path / "trace"
    (folder / "tensors.safetensors").unlink()
    (folder / name).write_bytes(pickle.dumps(Trap(trace)))
    with pytest.raises(ArtifactError):
        load(folder)
    assert not trace.exists()


def test_saving_again_replaces_what_was_saved(tmp_path: Path) -> None:
    save(tmp_path / "a", {"old": torch.zeros(1)})
    save(tmp_path / "a", {"new": torch.zeros(1)})
    assert list(load(tmp_path / "a").tensors) == ["new"]


def test_a_folder_of_the_users_own_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("mine")
    with pytest.raises(ArtifactError, match="files that separata did not save"):
        save(tmp_path)
    assert (tmp_path / "thesis.tex").read_text() == "mine"


def test_an_empty_folder_may_be_saved_into(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    assert load(save(tmp_path / "a")).config == {"rank": 2}


def test_settings_that_are_no_json_leave_what_was_saved(tmp_path: Path) -> None:
    save(tmp_path / "a")
    with pytest.raises(TypeError):
        save(tmp_path / "a", config={"rank": object()})
    assert load(tmp_path / "a").config == {"rank": 2}


def test_a_full_disk_is_told_and_leaves_nothing(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(disk)]
    try:
        subprocess.run(mount, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("a small file system can't be mounted here")
    try:
        with pytest.raises(WriteFailed, match="the disk is full"):
            save(disk / "a", {"x": torch.zeros(100_000)})
        assert list(disk.iterdir()) == []
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_versions_leave_out_what_is_not_installed() -> None:
    found = artifacts.versions("separata", "separata-no-such-thing")
    assert found["separata"] == __version__
    assert "separata-no-such-thing" not in found
