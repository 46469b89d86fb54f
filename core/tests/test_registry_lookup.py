"""Lookup in the registry: by kind and name, loading only what is asked for, with answers to what is not there."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import pytest

import separata
from separata import discovery, registry
from separata.catalog import Catalogue, parse
from separata.errors import (
    BlockedPlugin,
    BrokenPlugin,
    IncompatiblePlugin,
    InvalidConfig,
    UnknownName,
)
from separata.registry import Registry, load_object, select
from separata.testing import Site

RegistryOf = Callable[..., Registry]

OFFERS = """
@hookimpl
def separata_offers():
    yield Offer("kernel", "ball", "separata_toy.things:Ball", summary="A ball.",
                config="separata_toy.things:BallConfig")
    yield Offer("kernel", "drop", "separata_toy.things:drop", summary="A drop.")
    yield Offer("model", "house", "separata_toy.things:House.Door", summary="A door.")
"""
THINGS = """
import attrs

@attrs.frozen
class BallConfig:
    radius: float = attrs.field(default=1.0, validator=attrs.validators.gt(0))

class Ball:
    def __init__(self, config):
        self.config = config

class House:
    class Door:
        def __init__(self, width=2):
            self.width = width

def drop(height=1):
    return height
"""


@pytest.fixture
def toy(site: Site, registry_of: RegistryOf) -> Registry:
    """A registry with one plugin that offers two kernels and a model."""
    site.add("toy", OFFERS, files={"things.py": THINGS})
    return registry_of()


@pytest.fixture
def catalogued(registry_of: RegistryOf) -> Registry:
    """A registry with nothing installed, and that plugin in its catalogue."""
    offers = [{"kind": "kernel", "name": "ball", "summary": "A ball.", "tags": []}]
    row = {"dist": "separata-toy", "title": "Toys", "summary": "Play.", "offers": offers}
    return registry_of(parse(json.dumps({"registry": {"reserved": []}, "plugins": {"toy": row}})))


def loaded_plugins() -> set[str]:
    return {name.partition(".")[0] for name in sys.modules if name.startswith("separata_")} - {"separata_cli"}


def test_get_imports_what_the_offer_names(toy: Registry) -> None:
    assert toy.get("kernel", "toy/ball") is sys.modules["separata_toy.things"].Ball


def test_get_reaches_an_attribute_of_an_attribute(toy: Registry) -> None:
    assert toy.get("model", "toy/house").__qualname__ == "House.Door"


def test_get_by_slug_alone_is_the_first_offer_of_the_kind(toy: Registry) -> None:
    assert (toy.offer("kernel", "toy").name, toy.offer("model", "toy").name) == ("ball", "house")


def test_get_twice_gives_the_same_object(toy: Registry) -> None:
    assert toy.get("kernel", "toy/drop") is toy.get("kernel", "toy/drop")


def test_get_loads_the_one_plugin_that_is_asked_for(site: Site, toy: Registry) -> None:
    site.add("game", "raise RuntimeError")
    toy.get("kernel", "toy/ball")
    assert loaded_plugins() == {"separata_toy"}


def test_the_record_of_an_offer_is_found_without_importing_its_object(toy: Registry) -> None:
    assert toy.offer("kernel", "toy/ball").summary == "A ball."
    assert "separata_toy.things" not in sys.modules


def test_make_builds_from_the_validated_config(toy: Registry) -> None:
    assert toy.make("kernel", "toy/ball", radius=3).config.radius == 3.0


def test_make_refuses_a_setting_that_its_config_refuses(toy: Registry) -> None:
    with pytest.raises(InvalidConfig, match="radius"):
        toy.make("kernel", "toy/ball", radius=-1.0)


def test_make_refuses_a_setting_that_its_config_does_not_have(toy: Registry) -> None:
    with pytest.raises(InvalidConfig, match="did you mean radius"):
        toy.make("kernel", "toy/ball", radios=1.0)


def test_make_hands_plain_settings_to_an_object_without_a_config(toy: Registry) -> None:
    assert toy.make("model", "toy/house", width=5).width == 5


@pytest.mark.parametrize(
    "path", ["separata_toy.nowhere:x", "separata_toy.things:Bell", "separata_toy.things:Ball.x"]
)
def test_a_name_that_leads_nowhere_breaks_the_plugin_and_is_quoted(path: str, toy: Registry) -> None:
    with pytest.raises(BrokenPlugin) as caught:
        load_object(path, "toy")
    assert f"plugin 'toy' names {path}, which does not load" in caught.value.problem


@pytest.mark.parametrize("source", ["raise OSError('no\\nlibrary')", "import sys; sys.exit(0)", "def ("])
def test_a_module_that_fails_to_import_breaks_the_plugin_in_two_lines(
    source: str, site: Site, toy: Registry
) -> None:
    site.add("toy", OFFERS, files={"things.py": source})
    with pytest.raises(BrokenPlugin) as caught:
        toy.get("kernel", "toy/ball")
    assert len(str(caught.value).splitlines()) == 2


@pytest.mark.parametrize(
    ("kind", "name", "says"),
    [
        ("kernel", "toy/bal", "did you mean toy/ball?"),
        ("kernel", "toy/xyz", "there are toy/ball, toy/drop"),
        ("kernel", "ball", "did you mean toy/ball?"),
        ("kernel", "toi/ball", "did you mean toy/ball?"),
        ("estimator", "toy", "see `separata find --kind estimator`"),
        ("kernel", "qqqq/zzzz", "see `separata find --kind kernel`"),
        ("colonel", "toy/ball", "the kinds are model, trainer, estimator, kernel, scheduler"),
    ],
)
def test_an_unknown_name_is_answered_with_the_closest_ones(
    kind: Any, name: str, says: str, toy: Registry
) -> None:
    toy.plugin("toy")
    with pytest.raises(UnknownName) as caught:
        toy.get(kind, name)
    assert says in caught.value.remedy


def test_what_is_catalogued_and_not_installed_is_answered_with_the_package_to_install(
    catalogued: Registry,
) -> None:
    with pytest.raises(UnknownName) as caught:
        catalogued.get("kernel", "toy/ball")
    assert caught.value.remedy == "it ships in separata-toy: python -m pip install separata-toy"


def test_a_bare_name_is_answered_with_whatever_carries_it(catalogued: Registry) -> None:
    with pytest.raises(UnknownName, match=r"did you mean toy/ball\?"):
        catalogued.get("kernel", "ball")


@pytest.mark.parametrize(
    ("slug", "says"), [("tou", "did you mean toy?"), ("qqqq", "see `separata list --all`")]
)
def test_an_unknown_plugin_is_answered_with_the_closest_ones(slug: str, says: str, toy: Registry) -> None:
    with pytest.raises(UnknownName) as caught:
        toy.plugin(slug)
    assert caught.value.remedy == says


def test_select_without_names_takes_all_in_order(toy: Registry) -> None:
    assert [offer.name for offer in select(toy.plugin("toy").offers, [], "offer")] == [
        "ball",
        "drop",
        "house",
    ]


def test_select_keeps_the_order_that_is_asked_for(toy: Registry) -> None:
    assert [o.name for o in select(toy.plugin("toy").offers, ["house", "ball"], "offer")] == ["house", "ball"]


@pytest.mark.parametrize(
    ("name", "says"), [("bal", "did you mean ball?"), ("x", "there are ball, drop, house")]
)
def test_select_answers_an_unknown_name(name: str, says: str, toy: Registry) -> None:
    with pytest.raises(UnknownName) as caught:
        select(toy.plugin("toy").offers, [name], "offer")
    assert caught.value.remedy == says


@pytest.fixture
def process(site: Site, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The site as what this process has installed."""
    monkeypatch.setattr(discovery, "scan", site.installed)
    monkeypatch.setattr(registry, "catalogue", lambda: Catalogue({}, frozenset()))
    registry.default.cache_clear()
    yield site
    registry.default.cache_clear()


def test_the_public_functions_look_into_the_registry_of_the_process(process: Site) -> None:
    process.add("toy", OFFERS, files={"things.py": THINGS})
    assert separata.get("kernel", "toy/drop").__name__ == "drop"  # type: ignore[attr-defined]
    assert separata.make("model", "toy/house").width == 2  # type: ignore[attr-defined]
    assert [(row.slug, row.state) for row in separata.plugins()] == [("toy", "loaded")]
    assert [row.name for row in separata.find("door")] == []
    assert [row.name for row in separata.find(kind="model")] == ["toy/house"]


def test_the_environment_says_what_may_be_loaded(process: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    process.add("toy", OFFERS)
    monkeypatch.setenv("SEPARATA_PLUGINS", "game")
    with pytest.raises(BlockedPlugin):
        separata.get("kernel", "toy/drop")


@pytest.mark.parametrize(("value", "strict"), [("1", True), ("0", False), ("", False)])
def test_the_environment_asks_for_strictness(
    value: str, strict: bool, process: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    process.add("toy", requires=["separata>=9"])
    monkeypatch.setenv("SEPARATA_STRICT", value)
    if strict:
        with pytest.raises(IncompatiblePlugin):
            separata.plugins()
    else:
        assert [row.state for row in separata.plugins()] == ["incompatible"]
