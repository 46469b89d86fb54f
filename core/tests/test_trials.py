"""Trials: seeded, with the plugin's own inputs, and a memory for what was trained."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest

from separata.errors import UnknownName
from separata.registry import Registry
from separata.testing import Site
from separata.trials import Trial

RegistryOf = Callable[..., Registry]


@attrs.frozen
class Config:
    rank: int = 4


@pytest.fixture
def trial(site: Site, registry_of: RegistryOf) -> Trial:
    site.add("toy", files={"method.py": "RANK = 4\n"})
    return Trial("toy", registry_of())


@pytest.fixture
def trained(trial: Trial) -> Callable[..., int]:
    """Ask for the student, and say how often it was trained so far."""
    times: list[Path] = []

    def ask(changed: Trial | None = None, name: str = "student", **settings: Any) -> int:
        (changed or trial).keep(name, times.append, settings=settings)
        return len(times)

    return ask


def test_what_was_trained_is_kept(trained: Callable[..., int]) -> None:
    assert [trained(), trained()] == [1, 1]


@pytest.mark.parametrize("changes", [{"seed": 1}, {"scale": "full"}, {"slug": "game"}])
def test_another_seed_scale_or_plugin_trains_again(
    changes: dict[str, Any], trial: Trial, trained: Callable[..., int], site: Site, registry_of: RegistryOf
) -> None:
    site.add("game", files={"method.py": "RANK = 4\n"})
    trained()
    assert trained(attrs.evolve(trial, registry=registry_of(), **changes)) == 2


@pytest.mark.parametrize("settings", [{"rank": 5}, {}, {"rank": 4, "input": "prices"}])
def test_other_settings_train_again(settings: dict[str, Any], trained: Callable[..., int]) -> None:
    trained(rank=4)
    assert trained(**settings) == 2


def test_another_name_trains_again(trained: Callable[..., int]) -> None:
    trained()
    assert trained(name="teacher") == 2


@pytest.mark.parametrize(("config", "times"), [(Config(4), 1), (Config(5), 2)])
def test_a_config_among_the_settings_counts_with_its_settings(
    config: Config, times: int, trained: Callable[..., int]
) -> None:
    trained(model=Config(4))
    assert trained(model=config) == times


def test_the_order_of_the_settings_does_not_count(trained: Callable[..., int]) -> None:
    trained(rank=4, layers=2)
    assert trained(layers=2, rank=4) == 1


def test_a_changed_line_of_the_plugin_trains_again(site: Site, trained: Callable[..., int]) -> None:
    trained()
    (site.folder / "separata_toy" / "method.py").write_text("RANK = 5\n")
    assert trained() == 2


def test_a_new_module_of_the_plugin_trains_again(site: Site, trained: Callable[..., int]) -> None:
    trained()
    (site.folder / "separata_toy" / "deep").mkdir()
    (site.folder / "separata_toy" / "deep" / "other.py").touch()
    assert trained() == 2


def test_a_renamed_module_trains_again(site: Site, trained: Callable[..., int]) -> None:
    trained()
    module = site.folder / "separata_toy" / "method.py"
    module.rename(module.with_name("methods.py"))
    assert trained() == 2


def test_a_changed_line_of_another_plugin_does_not_count(
    site: Site, trained: Callable[..., int], registry_of: RegistryOf
) -> None:
    trained()
    site.add("game", files={"method.py": "RANK = 9\n"})
    assert trained(Trial("toy", registry_of())) == 1


def test_a_changed_line_of_a_plugin_that_is_one_module_trains_again(
    site: Site, registry_of: RegistryOf
) -> None:
    times: list[Path] = []
    site.add_metadata("playthings", entry_points={"ball": "separata_single"})
    for source in ("SIZE = 1\n", "SIZE = 1\n", "SIZE = 2\n"):
        (site.folder / "separata_single.py").write_text(source)
        Trial("ball", registry_of()).keep("student", times.append)
    assert len(times) == 2


def test_asking_imports_nothing_of_the_plugin(trained: Callable[..., int]) -> None:
    trained()
    assert "separata_toy" not in sys.modules


def test_training_that_fails_is_not_kept(trial: Trial, trained: Callable[..., int]) -> None:
    def fail(folder: Path) -> None:
        raise RuntimeError("diverged")

    with pytest.raises(RuntimeError, match="diverged"):
        trial.keep("student", fail)
    assert trained() == 1


def test_generators_start_from_the_seed(trial: Trial) -> None:
    torch = pytest.importorskip("torch")

    def draw(seed: int) -> Any:
        return torch.rand(4, generator=attrs.evolve(trial, seed=seed).generator())

    assert torch.equal(draw(1), draw(1))
    assert not torch.equal(draw(1), draw(2))


def test_a_generator_leaves_the_global_one_alone(trial: Trial) -> None:
    torch = pytest.importorskip("torch")
    before = torch.get_rng_state()
    torch.rand(4, generator=trial.generator())
    assert torch.equal(torch.get_rng_state(), before)


def offering(folder: Path, name: str) -> str:
    return f"@hookimpl\ndef separata_inputs():\n    yield Input({name!r}, file={str(folder)!r}, licence='')"


def test_the_plugins_own_input_comes_before_one_of_the_same_name(
    site: Site, registry_of: RegistryOf, tmp_path: Path
) -> None:
    for slug in ("another", "toy"):
        (tmp_path / slug).mkdir()
        site.add(slug, offering(tmp_path / slug, "prices"))
    assert Trial("toy", registry_of()).input("prices") == tmp_path / "toy"


def test_an_input_of_a_kit_can_be_used(site: Site, registry_of: RegistryOf, tmp_path: Path) -> None:
    site.add("toy")
    site.add("kit-toys", offering(tmp_path, "prices"))
    assert Trial("toy", registry_of()).input("prices") == tmp_path


def test_an_input_that_nobody_has_is_told(trial: Trial) -> None:
    with pytest.raises(UnknownName, match="'prices'"):
        trial.input("prices")
