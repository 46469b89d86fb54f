"""The registry: states, what is decided before any import, and faults that cost one plugin."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable

import pytest

from separata import loading, registry
from separata.catalog import Catalogue, parse
from separata.errors import (
    BlockedPlugin,
    BrokenPlugin,
    CatalogueUnreadable,
    ConflictingPlugins,
    IncompatiblePlugin,
    PluginError,
)
from separata.registry import Registry
from separata.testing import Site

RegistryOf = Callable[..., Registry]

OFFERS = """
@hookimpl
def separata_offers():
    yield Offer("kernel", "drop", "separata_toy.things:drop", summary="A drop.")
"""
THINGS = "def drop(height=1):\n    return height\n"


@pytest.fixture
def toy(site: Site, registry_of: RegistryOf) -> Registry:
    """A registry with one plugin that offers a kernel."""
    site.add("toy", OFFERS, files={"things.py": THINGS})
    return registry_of()


def catalogue_of(*slugs: str, reserved: tuple[str, ...] = ()) -> Catalogue:
    rows = {slug: {"dist": f"separata-{slug}", "title": slug, "summary": f"About {slug}."} for slug in slugs}
    return parse(json.dumps({"registry": {"reserved": reserved}, "plugins": rows}))


def loaded_plugins() -> set[str]:
    return {name.partition(".")[0] for name in sys.modules if name.startswith("separata_")} - {"separata_cli"}


def state_of(found: Registry, slug: str = "toy") -> tuple[str, str]:
    (row,) = [row for row in found.plugins() if row.slug == slug]
    return row.state, row.reason


def test_what_only_the_catalogue_knows_is_catalogued(registry_of: RegistryOf) -> None:
    (row,) = registry_of(catalogue_of("toy")).plugins()
    assert (row.slug, row.dist, row.state, row.summary) == ("toy", "separata-toy", "catalogued", "About toy.")


def test_an_installed_plugin_is_listed_from_its_metadata(site: Site, registry_of: RegistryOf) -> None:
    site.add("toy", version="1.2", summary="Play.")
    (row,) = registry_of(catalogue_of("toy")).plugins()
    assert (row.dist, row.version, row.state, row.summary) == ("separata-toy", "1.2", "installed", "Play.")


def test_a_used_plugin_is_loaded(toy: Registry) -> None:
    toy.plugin("toy")
    assert state_of(toy) == ("loaded", "")


def test_a_plugin_that_failed_is_broken_with_its_reason(site: Site, registry_of: RegistryOf) -> None:
    site.add("toy", "raise OSError('no device')")
    found = registry_of()
    with pytest.raises(BrokenPlugin):
        found.plugin("toy")
    state, reason = state_of(found)
    assert state == "broken"
    assert "OSError: no device" in reason


def test_a_plugin_left_out_is_blocked(site: Site, registry_of: RegistryOf) -> None:
    site.add("toy")
    assert state_of(registry_of(allow=["game"]))[0] == "blocked"


def test_a_plugin_for_another_core_is_incompatible(site: Site, registry_of: RegistryOf) -> None:
    site.add("toy", requires=["separata>=9"])
    state, reason = state_of(registry_of())
    assert state == "incompatible"
    assert "asks for separata>=9" in reason


def test_listing_imports_no_plugin_and_is_in_order(site: Site, registry_of: RegistryOf) -> None:
    for slug in ("toy", "game", "ball"):
        site.add(slug, "raise RuntimeError")
    assert [row.slug for row in registry_of(catalogue_of("car")).plugins()] == ["ball", "car", "game", "toy"]
    assert loaded_plugins() == set()


def test_a_blocked_plugin_is_refused_before_it_is_imported(site: Site, registry_of: RegistryOf) -> None:
    site.add("toy", "raise RuntimeError")
    with pytest.raises(BlockedPlugin, match="add toy to SEPARATA_PLUGINS"):
        registry_of(allow=[]).plugin("toy")
    assert loaded_plugins() == set()


def test_an_incompatible_plugin_is_refused_before_it_is_imported(site: Site, registry_of: RegistryOf) -> None:
    site.add("toy", "raise RuntimeError", requires=["separata<0.1"], version="7")
    with pytest.raises(IncompatiblePlugin, match=r"'toy' \(separata-toy 7\) asks for separata<0.1"):
        registry_of().plugin("toy")
    assert loaded_plugins() == set()


def test_two_distributions_with_one_slug_are_both_named_and_neither_is_imported(
    site: Site, registry_of: RegistryOf
) -> None:
    site.add("toy", "raise RuntimeError")
    site.add_metadata("playthings", version="2", entry_points={"toy": "separata_toy._plugin"})
    with pytest.raises(ConflictingPlugins) as caught:
        registry_of().plugin("toy")
    assert "separata-toy 1.0" in caught.value.problem
    assert "playthings 2" in caught.value.problem
    assert loaded_plugins() == set()


def test_a_conflict_costs_no_other_slug(site: Site, registry_of: RegistryOf) -> None:
    site.add("toy")
    site.add_metadata("playthings", entry_points={"toy": "separata_toy._plugin"})
    site.add("game")
    found = registry_of()
    assert found.plugin("game").slug == "game"
    assert state_of(found)[0] == "broken"


def test_a_slug_that_the_catalogue_keeps_for_another_distribution_is_refused(
    site: Site, registry_of: RegistryOf
) -> None:
    site.add("toy", "raise RuntimeError", dist="playthings")
    with pytest.raises(ConflictingPlugins, match=r"claimed by playthings, but .* keeps it for separata-toy"):
        registry_of(catalogue_of("toy")).plugin("toy")
    assert loaded_plugins() == set()


def test_a_reserved_slug_is_refused_to_a_foreign_distribution(site: Site, registry_of: RegistryOf) -> None:
    site.add("toy", "raise RuntimeError", dist="playthings")
    with pytest.raises(ConflictingPlugins, match="playthings, but it is reserved"):
        registry_of(catalogue_of(reserved=("toy",))).plugin("toy")


def test_a_reserved_slug_is_there_for_the_distribution_of_its_name(
    site: Site, registry_of: RegistryOf
) -> None:
    site.add("toy")
    assert registry_of(catalogue_of(reserved=("toy",))).plugin("toy").dist == "separata-toy"


@pytest.mark.parametrize("slug", sorted(registry.RESERVED))
def test_a_word_of_the_command_line_or_of_the_project_is_no_slug(
    slug: str, site: Site, registry_of: RegistryOf
) -> None:
    site.add_metadata("playthings", entry_points={slug: "some.module"})
    with pytest.raises(ConflictingPlugins, match="playthings claims the slug"):
        registry_of().plugin(slug)


@pytest.mark.parametrize("slug", ["Toy", "to_y", "to.y", "1toy", "toy-", "../toy", "töy"])
def test_a_malformed_slug_is_refused(slug: str, site: Site, registry_of: RegistryOf) -> None:
    site.add_metadata("playthings", entry_points={slug: "some.module"})
    with pytest.raises(BrokenPlugin, match="a slug is lower-case words"):
        registry_of().plugin(slug)


def test_a_broken_plugin_is_tried_once(site: Site, registry_of: RegistryOf) -> None:
    site.add("toy", "import sys\nsys.toy_tries = getattr(sys, 'toy_tries', 0) + 1\nraise OSError")
    found = registry_of()
    for _ in range(3):
        assert found.loadable("toy") is None
    assert sys.__dict__.pop("toy_tries") == 1


def test_a_broken_plugin_costs_no_other(site: Site, toy: Registry, registry_of: RegistryOf) -> None:
    site.add("bad", "import sys; sys.exit(1)")
    found = registry_of()
    assert found.loadable("bad") is None
    assert found.get("kernel", "toy/drop")(3) == 3


def test_strictly_a_broken_plugin_raises_where_it_would_be_passed_over(
    site: Site, registry_of: RegistryOf
) -> None:
    site.add("toy", "raise OSError")
    with pytest.raises(BrokenPlugin):
        registry_of(strict=True).loadable("toy")


def test_strictly_a_refused_plugin_raises_in_the_list(site: Site, registry_of: RegistryOf) -> None:
    site.add("toy", requires=["separata>=9"])
    with pytest.raises(IncompatiblePlugin):
        registry_of(strict=True).plugins()


def test_strictly_a_plugin_that_was_left_out_on_purpose_is_no_fault(
    site: Site, registry_of: RegistryOf
) -> None:
    site.add("toy")
    assert state_of(registry_of(strict=True, allow=[]))[0] == "blocked"


def test_a_damaged_catalogue_costs_only_what_is_not_installed(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreadable() -> Catalogue:
        raise CatalogueUnreadable("damaged", "install again")

    monkeypatch.setattr(registry, "catalogue", unreadable)
    site.add("toy", OFFERS, files={"things.py": THINGS})
    found = Registry(site.installed())
    assert found.get("kernel", "toy/drop")(2) == 2
    assert isinstance(found.catalogue_problem, CatalogueUnreadable)


def test_threads_that_ask_at_once_all_get_the_plugin_imported_once(
    site: Site, registry_of: RegistryOf
) -> None:
    site.add(
        "toy",
        "import sys, time\ntime.sleep(0.05)\nsys.toy_imports = getattr(sys, 'toy_imports', 0) + 1\n" + OFFERS,
        files={"things.py": THINGS},
    )
    found = registry_of()
    found.hook("separata_event", event=None)
    start = threading.Barrier(8)
    answers: list[object] = []

    def ask() -> None:
        start.wait()
        try:
            answers.append(found.get("kernel", "toy/drop"))
        except PluginError as error:
            answers.append(error)

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sys.__dict__.pop("toy_imports") == 1
    assert answers == [sys.modules["separata_toy.things"].drop] * 8


def test_threads_that_ask_first_of_all_share_one_set_of_listeners(
    registry_of: RegistryOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[loading.Loader] = []

    class SlowLoader(loading.Loader):
        def __init__(self) -> None:
            time.sleep(0.05)
            super().__init__()
            made.append(self)

    monkeypatch.setattr(loading, "Loader", SlowLoader)
    found = registry_of()
    start = threading.Barrier(4)

    def ask() -> None:
        start.wait()
        found.hook("separata_event", event=None)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 1
