"""Running the kit on a plugin: which checks, on what, with what outcome, and whether there were enough of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from importlib import import_module
from typing import Any, Literal, TypeAlias

import attrs

from separata import registry as registries
from separata.artifacts import versions
from separata.records import Offer
from separata.registry import Registry, load_object

from .checks import Check, CheckFailed, NotOffered
from .examples import Example

State: TypeAlias = Literal["passed", "failed", "expected failure", "not offered"]

# The fewest checks that must really run on each kind of subject. A plugin may leave out what it does not promise;
# a kit that runs fewer than these would be green and say nothing.
FLOORS = {"plugin": 7, "kernel": 5, "model": 5, "trainer": 5, "estimator": 6, "scheduler": 4}


@attrs.frozen
class Case:
    """One check on one subject.

    Args:
        kind: ``plugin``, or the offer's kind.
        subject: The slug, or the offer's full name.
        check: The check.
        target: What the check is called with.
        excuse: Why it is expected to fail; empty if it is not.
    """

    kind: str
    subject: str
    check: Check
    target: Any
    excuse: str = ""

    def run(self) -> Outcome:
        """Run the check; nothing escapes but an interrupt."""
        state: State = "passed"
        reason = ""
        try:
            self.check.run(self.target)
        except NotOffered as absent:
            return Outcome(self, "not offered", str(absent))
        except CheckFailed as failure:
            state, reason = "failed", str(failure)
        except Exception as error:
            state, reason = "failed", f"{type(error).__name__}: {' '.join(str(error).split())}"
        if self.excuse and state == "failed":
            return Outcome(self, "expected failure", f"{self.excuse} ({reason})")
        if self.excuse:
            return Outcome(self, "failed", f"it passes, and is expected to fail: {self.excuse}; remove that")
        return Outcome(self, state, reason)


@attrs.frozen
class Outcome:
    """What became of a case."""

    case: Case
    state: State
    reason: str = ""


@attrs.frozen
class Report:
    """All outcomes of a plugin, counted."""

    slug: str
    outcomes: tuple[Outcome, ...]

    @property
    def counts(self) -> dict[str, int]:
        """How many checks ended in each state."""
        return dict(Counter(outcome.state for outcome in self.outcomes))

    @property
    def missing(self) -> list[str]:
        """Subjects on which fewer checks ran than their kind's floor."""
        ran: Counter[tuple[str, str]] = Counter()
        for outcome in self.outcomes:
            ran[outcome.case.kind, outcome.case.subject] += outcome.state != "not offered"
        return [
            f"{subject}: {count} checks ran, a {kind} has at least {FLOORS[kind]}"
            for (kind, subject), count in ran.items()
            if count < FLOORS[kind]
        ]

    @property
    def holds(self) -> bool:
        """Whether nothing failed and enough was checked."""
        return not self.missing and not any(outcome.state == "failed" for outcome in self.outcomes)

    def as_json(self) -> dict[str, Any]:
        """The report as plain JSON values."""
        return {
            "slug": self.slug,
            "holds": self.holds,
            "counts": self.counts,
            "missing": self.missing,
            "versions": versions("separata", f"separata-{self.slug}", "torch"),
            "checks": [
                {
                    "kind": outcome.case.kind,
                    "subject": outcome.case.subject,
                    "check": outcome.case.check.name,
                    "says": outcome.case.check.says,
                    "state": outcome.state,
                    "reason": outcome.reason,
                }
                for outcome in self.outcomes
            ],
        }


def check(slug: str, *, registry: Registry | None = None) -> Report:
    """Run every check that applies to a plugin.

    Raises:
        PluginError: If the plugin can't be loaded at all.
    """
    return Report(slug, tuple(case.run() for case in cases(slug, registry=registry)))


def cases(slug: str, *, registry: Registry | None = None) -> Iterator[Case]:
    """The checks that apply to a plugin and to each of its offers, before they run."""
    from . import plugins

    registry = registry or registries.default()
    plugin = registry.plugin(slug)
    subject = plugins.PluginSubject(plugin, registry.installed(slug))
    for one in plugins.CHECKS:
        yield Case("plugin", slug, one, subject)
    for offer in plugin.offers:
        if offer.example:
            yield from _offer_cases(slug, offer, offer.example)


def _offer_cases(slug: str, offer: Offer, path: str) -> Iterator[Case]:
    name = f"{slug}/{offer.name}"
    suite = import_module(f"{__package__}.{offer.kind}s")
    try:
        example = load_object(path, slug)()
        if not isinstance(example, Example):
            raise CheckFailed(
                f"{path} returns a {type(example).__name__}, not one of separata.testing's examples"
            )
        target = suite.subject(slug, offer, example)
    except Exception as error:
        yield Case(offer.kind, name, _unloadable(error), None)
        return
    for one in suite.CHECKS:
        yield Case(offer.kind, name, one, target, example.expected_failures.get(one.name, ""))


def _unloadable(error: Exception) -> Check:
    def gives_an_example(_: object) -> None:
        raise error

    return Check("gives-an-example", "The offer's example can be made.", gives_an_example)
