"""Loading one plugin: everything that can be wrong with it costs that plugin alone."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from separata import Claim, Command, Input, Offer, Paper, hookimpl
from separata.errors import BrokenPlugin
from separata.events import Saved
from separata.loading import Loader, Plugin
from separata.testing import Site

WHOLE = """
@hookimpl
def separata_paper():
    return Paper("Toys")

@hookimpl
def separata_offers():
    yield Offer("kernel", "ball", "toy:Ball", summary="A ball.")

@hookimpl
def separata_commands():
    yield Command("toy:app", summary="Play.")

@hookimpl
def separata_claims():
    yield Claim("bounces", says="It bounces.", paper="0.9", proof="toy:bounces")

@hookimpl
def separata_benchmarks():
    yield Benchmark("drop", says="A drop.", peer="stone", run="toy:drop")

@hookimpl
def separata_inputs():
    yield Input("floor", file="floor.txt", licence="CC0-1.0")
"""

BROKEN = {
    "raises": ("raise OSError('no device')", "OSError: no device"),
    "lacks a module": ("import missing_module_of_toy", "ModuleNotFoundError: No module named 'missing"),
    "exits": ("import sys; sys.exit(0)", "SystemExit: 0"),
    "does not parse": ("def (", "SyntaxError"),
    "misspells a hook": ("@hookimpl\ndef separata_ofers():\n    yield", "unknown hook 'separata_ofers'"),
    "misnames an argument": ("@hookimpl\ndef separata_event(evnt):\n    pass", "evnt"),
    "yields the wrong record": (
        "@hookimpl\ndef separata_offers():\n    yield Command('a:b', summary='C.')",
        "separata_offers yielded Command(object='a:b', summary='C.'); it yields Offer records",
    ),
    "yields no record": ("@hookimpl\ndef separata_claims():\n    yield 'a claim'", "yielded 'a claim'"),
    "returns a record instead of yielding it": (
        "@hookimpl\ndef separata_offers():\n    return Offer('kernel', 'a', 'a:b', summary='A.')",
        "it yields Offer records",
    ),
    "yields a record that can't be": (
        "@hookimpl\ndef separata_offers():\n    yield Offer('colonel', 'a', 'a:b', summary='A.')",
        "an offer's kind is 'colonel'",
    ),
    "offers one name twice": (
        "@hookimpl\ndef separata_offers():\n"
        "    yield Offer('kernel', 'a', 'a:b', summary='A.')\n"
        "    yield Offer('kernel', 'a', 'a:c', summary='A.')",
        "separata_offers yields kernel a twice",
    ),
    "claims one name twice": (
        "@hookimpl\ndef separata_inputs():\n"
        "    yield Input('a', file='x', licence='')\n"
        "    yield Input('a', file='y', licence='')",
        "separata_inputs yields a twice",
    ),
    "fails in a hook": ("@hookimpl\ndef separata_claims():\n    yield 1 / 0", "ZeroDivisionError"),
}


def load(site: Site, loader: Loader | None = None, slug: str = "toy") -> Plugin:
    return (loader or Loader()).load(site.installed()[slug][0])


def test_a_loaded_plugin_has_every_record_that_it_declares(site: Site) -> None:
    site.add("toy", WHOLE, version="3.0")
    plugin = load(site)
    assert (plugin.slug, plugin.dist, plugin.version) == ("toy", "separata-toy", "3.0")
    assert plugin.paper == Paper("Toys")
    assert plugin.offers == (Offer("kernel", "ball", "toy:Ball", summary="A ball."),)
    assert plugin.commands == (Command("toy:app", summary="Play."),)
    assert plugin.claims == (Claim("bounces", says="It bounces.", paper="0.9", proof="toy:bounces"),)
    assert plugin.inputs == (Input("floor", file="floor.txt", licence="CC0-1.0"),)
    assert [case.name for case in plugin.benchmarks] == ["drop"]


def test_a_plugin_that_implements_nothing_declares_nothing(site: Site) -> None:
    site.add("toy")
    plugin = load(site)
    assert plugin.paper is None
    assert plugin.offers == plugin.commands == plugin.claims == plugin.benchmarks == plugin.inputs == ()


def test_each_plugin_gets_its_own_records_only(site: Site) -> None:
    loader = Loader()
    site.add("toy", WHOLE)
    site.add("game", WHOLE.replace("ball", "dice"))
    load(site, loader)
    assert [offer.name for offer in load(site, loader, "game").offers] == ["dice"]


def test_one_name_may_be_offered_under_two_kinds(site: Site) -> None:
    hooks = "@hookimpl\ndef separata_offers():\n"
    for kind in ("kernel", "model"):
        hooks += f"    yield Offer({kind!r}, 'a', 'a:b', summary='A.')\n"
    site.add("toy", hooks)
    assert [offer.kind for offer in load(site).offers] == ["kernel", "model"]


@pytest.mark.parametrize("case", BROKEN)
def test_a_plugin_that_breaks_the_rules_is_broken_and_says_how(case: str, site: Site) -> None:
    hooks, detail = BROKEN[case]
    site.add("toy", hooks, version="0.3")
    with pytest.raises(BrokenPlugin) as caught:
        load(site)
    assert caught.value.problem.startswith("plugin 'toy' (separata-toy 0.3) is broken: ")
    assert detail in caught.value.problem
    assert "python -m pip uninstall separata-toy" in caught.value.remedy


@pytest.mark.parametrize("case", BROKEN)
def test_the_cause_stays_with_the_error_and_off_its_two_lines(case: str, site: Site) -> None:
    site.add("toy", BROKEN[case][0])
    with pytest.raises(BrokenPlugin) as caught:
        load(site)
    assert caught.value.__cause__ is not None
    assert len(str(caught.value).splitlines()) == 2


def test_an_entry_point_that_names_no_module_is_broken(site: Site) -> None:
    site.add_metadata("separata-toy", entry_points={"toy": "separata_toy.nowhere"})
    with pytest.raises(BrokenPlugin, match="ModuleNotFoundError"):
        load(site)


def test_the_user_who_interrupts_a_load_is_obeyed(site: Site) -> None:
    site.add("toy", "@hookimpl\ndef separata_claims():\n    raise KeyboardInterrupt")
    with pytest.raises(KeyboardInterrupt):
        load(site)


def test_an_interrupted_load_can_be_tried_again(site: Site) -> None:
    loader = Loader()
    site.add(
        "toy",
        "again = False\n@hookimpl\ndef separata_claims():\n    global again\n"
        "    if not again:\n        again = True\n        raise KeyboardInterrupt\n    return []",
    )
    with pytest.raises(KeyboardInterrupt):
        load(site, loader)
    assert load(site, loader).claims == ()


def test_a_broken_plugin_hears_no_events(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    loader = Loader()
    site.add(
        "toy",
        "@hookimpl\ndef separata_event(event):\n    print('heard')\n"
        "@hookimpl\ndef separata_claims():\n    yield 'nonsense'",
    )
    with pytest.raises(BrokenPlugin):
        load(site, loader)
    loader.emit(Saved("x"))
    assert capsys.readouterr().out == ""


class Listener:
    def __init__(self, failure: Exception | None = None) -> None:
        self.heard: list[object] = []
        self.failure = failure

    @hookimpl
    def separata_event(self, event: object) -> None:
        self.heard.append(event)
        if self.failure:
            raise self.failure


def test_every_listener_hears_every_event() -> None:
    loader, one, two = Loader(), Listener(), Listener()
    loader.listen(one)
    loader.listen(two)
    loader.emit(Saved("x"))
    assert one.heard == two.heard == [Saved("x")]


def test_a_listener_that_raises_stops_neither_the_run_nor_the_other_listeners() -> None:
    loader = Loader()
    listeners = [Listener(), Listener(OSError("disk")), Listener()]
    for listener in listeners:
        loader.listen(listener)
    loader.emit(Saved("x"))
    loader.emit(Saved("y"))
    assert [len(listener.heard) for listener in listeners] == [2, 2, 2]


def test_a_listener_that_raises_is_reported_once(capsys: pytest.CaptureFixture[str]) -> None:
    loader = Loader()
    loader.listen(Listener(OSError("disk")))
    for name in "abc":
        loader.emit(Saved(name))
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith("failed and is not reported again: OSError: disk")


def test_a_listener_may_leave_the_event_out() -> None:
    calls: list[str] = []

    class Bell:
        @hookimpl
        def separata_event(self) -> None:
            calls.append("ring")

    loader = Loader()
    loader.listen(Bell())
    loader.emit(Saved("x"))
    assert calls == ["ring"]


def test_the_first_plugin_that_answers_a_single_question_wins() -> None:
    loader = Loader()
    for answer in ("second", "first", None):
        loader.listen(SimpleNamespace(separata_placement=hookimpl(lambda answer=answer: answer)))
    assert loader.call("separata_placement", placement=object()) == "first"


def test_loading_imports_the_hook_module_and_nothing_else_of_the_plugin(site: Site) -> None:
    site.add("toy", WHOLE, files={"heavy.py": "raise RuntimeError"})
    load(site)
    assert {name for name in sys.modules if name.startswith("separata_toy")} == {
        "separata_toy",
        "separata_toy._plugin",
    }
