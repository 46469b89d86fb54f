"""Claims of papers put to the proof on real input: the paper's figure, ours, and the peer's, side by side."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

import attrs

from . import registry as registries
from .artifacts import versions
from .benchmarks import Race, Timing, finite, growth, race
from .errors import SeparataError
from .events import ClaimChecked
from .records import Claim, Scale
from .registry import Registry, load_object, select
from .trials import Trial

__all__ = [
    "Bound",
    "Evidence",
    "Race",
    "Timing",
    "Trial",
    "Verdict",
    "at_least",
    "at_most",
    "close_to",
    "growth",
    "prove",
    "race",
]


@attrs.frozen
class Bound:
    """What a measured figure must reach; made by ``at_most``, ``at_least`` and ``close_to``."""

    relation: Literal["<=", ">=", "="]
    value: float
    tolerance: float = 0.0

    def holds(self, measured: float) -> bool:
        """Whether a figure keeps the bound; NaN never does."""
        if math.isnan(measured):
            return False
        if self.relation == "=":
            return bool(abs(measured - self.value) <= self.tolerance)
        return bool(measured <= self.value if self.relation == "<=" else measured >= self.value)

    def __str__(self) -> str:
        spread = f" ± {self.tolerance:g}" if self.relation == "=" else ""
        return f"{self.relation} {self.value:g}{spread}"


def at_most(value: float) -> Bound:
    """A bound from above."""
    return Bound("<=", value)


def at_least(value: float) -> Bound:
    """A bound from below."""
    return Bound(">=", value)


def close_to(value: float, tolerance: float) -> Bound:
    """A bound from both sides."""
    return Bound("=", value, tolerance)


def _floats(figures: Mapping[str, Any]) -> dict[str, float]:
    return {name: float(figure) for name, figure in figures.items()}


@attrs.frozen
class Evidence:
    """What a proof measured.

    Args:
        measured: The claim's figure, as measured here.
        bound: What it must reach.
        unit: Unit of the figure, such as ``nats`` or ``ratio``.
        peers: The same figure for each peer, measured in the same process.
        table: Rows behind the figure, for who wants to see more.
        note: What a reader should know about this measurement.
    """

    measured: float = attrs.field(converter=float)
    bound: Bound
    unit: str
    peers: Mapping[str, float] = attrs.field(factory=dict, kw_only=True, converter=_floats)
    table: Sequence[Mapping[str, object]] = attrs.field(default=(), kw_only=True)
    note: str = attrs.field(default="", kw_only=True)


@attrs.frozen(kw_only=True)
class Verdict:
    """A claim with its evidence.

    ``holds`` is None where the claim can't be put to the proof at this scale, and False where its proof failed
    to run: ``note`` says why.
    """

    slug: str
    claim: Claim
    evidence: Evidence | None
    holds: bool | None
    note: str
    seconds: float
    seed: int
    versions: dict[str, str]

    @property
    def failed(self) -> bool:
        """Whether it does not hold and should: its record does not say so, or its proof did not run."""
        return self.holds is False and not (self.claim.refuted and self.evidence)

    def as_json(self) -> dict[str, Any]:
        """The verdict as plain JSON values."""
        found = self.evidence
        return {
            "slug": self.slug,
            "claim": self.claim.name,
            "says": self.claim.says,
            "paper": self.claim.paper,
            "measured": finite(found.measured) if found else None,
            "bound": str(found.bound) if found else None,
            "unit": found.unit if found else None,
            "holds": self.holds,
            "refuted": self.claim.refuted,
            "peer": {name: finite(value) for name, value in found.peers.items()} if found else {},
            "table": [dict(row) for row in found.table] if found else [],
            "note": self.note,
            "seconds": round(self.seconds, 3),
            "seed": self.seed,
            "versions": self.versions,
        }


def prove(
    slug: str,
    names: Iterable[str] = (),
    *,
    scale: Scale = "small",
    seed: int = 0,
    registry: Registry | None = None,
) -> Iterator[Verdict]:
    """Put a plugin's claims to the proof, one after the other.

    Args:
        slug: The plugin.
        names: Names of the claims; all if none are given.
        scale: ``small`` or ``full``.
        seed: Seed of the proofs.
        registry: Where to look the plugin up; the process's own if not given.

    Raises:
        UnknownName: If the plugin has no claim of that name.
        PluginError: If the plugin can't be loaded.
    """
    registry = registry or registries.default()
    claims = select(registry.plugin(slug).claims, names, f"claim of {slug}")
    trial = Trial(slug, registry, scale, seed)
    for claim in claims:
        verdict = _verdict(claim, trial)
        if verdict.holds is not None:
            registry.emit(ClaimChecked(slug, claim.name, holds=verdict.holds))
        yield verdict


def _evidence(returned: object) -> Evidence:
    if not isinstance(returned, Evidence):
        raise TypeError(f"the proof returned {returned!r}; a proof returns Evidence")
    return returned


def _verdict(claim: Claim, trial: Trial) -> Verdict:
    start = time.perf_counter()
    evidence: Evidence | None = None
    holds: bool | None
    if trial.scale not in claim.scales:
        holds, note = None, f"not run: it needs --scale {claim.scales[0]}"
    else:
        try:
            evidence = _evidence(load_object(claim.proof, trial.slug)(trial))
            holds, note = evidence.bound.holds(evidence.measured), evidence.note
        except SeparataError as error:
            holds, note = False, f"not proven: {error.problem}; {error.remedy}"
        # A proof that fails, or calls sys.exit(), is a claim that does not hold; the others are still proved.
        except (Exception, SystemExit) as error:
            detail = " ".join(str(error).split())
            holds, note = False, f"not proven: {type(error).__name__}: {detail}"
    dist = trial.registry.installed(trial.slug).dist
    return Verdict(
        slug=trial.slug,
        claim=claim,
        evidence=evidence,
        holds=holds,
        note=note,
        seconds=time.perf_counter() - start,
        seed=trial.seed,
        versions=versions("separata", dist, "torch"),
    )
