"""Schedulers that say after each update whether the target is to be refreshed now.

All count gradient updates, not environment steps: what makes a Bellman step exact is how often the network or the
table moved towards one target.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import attrs
import numpy as np

from .errors import InvalidObservation, InvalidSetting
from .periods import AVERAGING, check_discount, growth, optimal_periods

FOREVER = 2**62


@attrs.define
class Schedule:
    """What all schedules share: they count updates and refreshes, and never lose a fraction of a period.

    An observation is None for one more update, or a mapping with ``step``, updates so far (they may jump), and, for
    schedules that look at it, ``td``, the temporal differences or their mean size.

    Attributes:
        updates: Updates seen.
        refreshes: Refreshes decided, n.
        next_update: The number of updates before which there is no refresh.
    """

    updates: int = attrs.field(default=0, init=False)
    refreshes: int = attrs.field(default=0, init=False)
    next_update: int = attrs.field(default=0, init=False)

    def __attrs_post_init__(self) -> None:
        self.next_update = self._end(0)

    def step(self, observation: Mapping[str, Any] | None = None) -> bool:
        """Take one observation; say whether to refresh the target now.

        If updates jump over several ends of periods, there is one refresh, and the next end is the first to come.

        Raises:
            InvalidObservation: If updates go back or are no whole number, or differences are missing or not finite.
        """
        updates = self._updates(observation)
        if not self._due(updates, observation or {}):
            self.updates = updates
            return False
        self.updates = updates
        self.refreshes += 1
        self.next_update = self._end(self.refreshes)
        while self.next_update <= updates:
            self.refreshes += 1
            self.next_update = self._end(self.refreshes)
        return True

    def state_dict(self) -> dict[str, Any]:
        """Counts, as plain numbers."""
        return {name: getattr(self, name) for name in self._kept()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from a saved state.

        Raises:
            InvalidSetting: If the state lacks a count or has one too many.
        """
        if set(state) != set(self._kept()):
            raise InvalidSetting(
                f"the state holds {', '.join(sorted(state)) or 'nothing'}",
                f"a {type(self).__name__} goes on from {', '.join(sorted(self._kept()))}",
            )
        for name, value in state.items():
            setattr(self, name, value)

    def _updates(self, observation: Mapping[str, Any] | None) -> int:
        if observation is None or "step" not in observation:
            return self.updates + 1
        found = observation["step"]
        if isinstance(found, bool) or not isinstance(found, int | np.integer) or found < self.updates:
            raise InvalidObservation(
                f"step is {found!r} after {self.updates}",
                "give updates so far, a whole number that never falls",
            )
        return int(found)

    def _due(self, updates: int, observation: Mapping[str, Any]) -> bool:
        return updates >= self.next_update

    def _end(self, period: int) -> int:
        """Updates at which a period ends, the first being number 0."""
        raise NotImplementedError

    def _kept(self) -> Sequence[str]:
        return "updates", "refreshes", "next_update"


def _positive(_: object, attribute: attrs.Attribute[Any], value: float) -> None:
    if not (value >= 1 and math.isfinite(value)):
        raise InvalidSetting(f"{attribute.name} is {value}", "give a number of updates, at least 1")


@attrs.define
class Constant(Schedule):
    """A refresh every so many updates, as most agents do it.

    Args:
        interval: Updates in a period.
    """

    interval: int = attrs.field(validator=_positive)

    def _end(self, period: int) -> int:
        return self.interval * (period + 1)


@attrs.define
class Geometric(Schedule):
    """Periods that grow without end: ``K_n = K_0 gamma^(-n / (1 + p))``, with p = 1/2 ``K_0 gamma^(-2n/3)``.

    Needs no horizon. At gamma = 0.99 each period is 0.67 % longer than the one before.

    Args:
        gamma: Discount in (0, 1).
        first: K_0, updates in the first period.
        longest: No period is longer; 100 K_0 if not given, ``inf`` for no bound.
        rate: p, see ``periods.growth``.
    """

    gamma: float
    first: float = attrs.field(default=1000, validator=_positive)
    longest: float | None = None
    rate: float = AVERAGING

    def __attrs_post_init__(self) -> None:
        if not growth(self.gamma, self.rate) > 0:
            raise InvalidSetting(f"gamma is {self.gamma}", "periods that grow by gamma^-1 need gamma above 0")
        if not self._longest >= self.first:
            raise InvalidSetting(
                f"longest is {self.longest}, first is {self.first}", "the longest period is no shorter"
            )
        super().__attrs_post_init__()

    def length(self, period: int) -> float:
        """K_n before rounding; n counts from 0."""
        # Exponents above 60 lie beyond every count of updates, and would overflow.
        return min(self.first * math.exp(min(period * self._step, 60)), self._longest)

    @property
    def _longest(self) -> float:
        return 100 * self.first if self.longest is None else self.longest

    @property
    def _step(self) -> float:
        """Logarithm of a period over the one before."""
        return -math.log(growth(self.gamma, self.rate))

    def _end(self, period: int) -> int:
        # The sum in closed form, rounded once: whole periods that add up to the real ones.
        growing = min(period + 1, math.log(self._longest / self.first) / self._step + 1) // 1
        total = self.first * math.expm1(min(growing * self._step, 60)) / math.expm1(self._step)
        rest = period + 1 - growing
        return round(min(total + (rest * self._longest if rest else 0), FOREVER))


@attrs.define
class Listed(Schedule):
    """Periods of given lengths; after the last one the target stays.

    Args:
        lengths: Updates in each period.
    """

    lengths: Sequence[int]
    _ends: list[int] = attrs.field(init=False, repr=False)

    def __attrs_post_init__(self) -> None:
        found = np.asarray(self.lengths)
        if found.ndim != 1 or not found.size or not (found >= 1).all() or (found % 1).any():
            raise InvalidSetting(
                f"lengths are {self.lengths!r}", "give whole numbers of updates, each at least 1"
            )
        self._ends = np.cumsum(found.astype(np.int64)).tolist()
        super().__attrs_post_init__()

    def _end(self, period: int) -> int:
        return self._ends[period] if period < len(self._ends) else FOREVER


def optimal(gamma: float, budget: int, periods: int, *, rate: float = AVERAGING, minimum: int = 1) -> Listed:
    """The best periods for a budget that is known beforehand, see ``periods.optimal_periods``."""
    return Listed(optimal_periods(gamma, budget, periods, rate=rate, minimum=minimum).tolist())


@attrs.define
class Triggered(Schedule):
    """A refresh as soon as the differences are small enough, ever smaller.

    The paper's outlook (ATQL) refreshes when the mean temporal difference over all pairs falls below ``n^-2``.

    Args:
        threshold: ``n^-2``, or ``gamma^n`` to keep step with the contraction.
        scale: What the threshold is multiplied with, in the unit of rewards.
        gamma: Discount, for ``gamma^n``.
        shortest: No period is shorter.
        longest: A refresh comes after so many updates at the latest; never, if not given.
        patience: Observations in a row that have to be small enough.
        decay: Weight of the past in the running mean of the differences; 0 takes each as it is, which suits exact ones.
    """

    threshold: Literal["n^-2", "gamma^n"] = "n^-2"
    scale: float = 1.0
    gamma: float | None = None
    shortest: int = attrs.field(default=1, validator=_positive)
    longest: int | None = None
    patience: int = attrs.field(default=1, validator=_positive)
    decay: float = 0.0
    mean: float | None = attrs.field(default=None, init=False)
    small: int = attrs.field(default=0, init=False)
    begun: int = attrs.field(default=0, init=False)

    def __attrs_post_init__(self) -> None:
        if self.threshold not in ("n^-2", "gamma^n"):
            raise InvalidSetting(f"threshold is {self.threshold!r}", "give n^-2 or gamma^n")
        if self.threshold == "gamma^n":
            if self.gamma is None:
                raise InvalidSetting("threshold gamma^n without gamma", "give the discount")
            check_discount(self.gamma)
        if not (self.scale > 0 and 0 <= self.decay < 1):
            raise InvalidSetting(
                f"scale is {self.scale}, decay is {self.decay}", "scale is positive, 0 <= decay < 1"
            )
        if self.longest is not None and self.longest < self.shortest:
            raise InvalidSetting(
                f"longest is {self.longest}, shortest is {self.shortest}", "the longest period is no shorter"
            )
        super().__attrs_post_init__()

    @property
    def bound(self) -> float:
        """What the differences must fall below now."""
        if self.threshold == "gamma^n":
            return self.scale * float(self.gamma or 0) ** self.refreshes
        return self.scale / (self.refreshes + 1) ** 2

    def _due(self, updates: int, observation: Mapping[str, Any]) -> bool:
        size = _size(observation)
        self.mean = size if self.mean is None else self.decay * self.mean + (1 - self.decay) * size
        self.small = self.small + 1 if self.mean < self.bound else 0
        late = self.longest is not None and updates >= self.begun + self.longest
        due = late or (updates >= self.next_update and self.small >= self.patience)
        if due:
            self.begun, self.small, self.mean = updates, 0, None
        return due

    def _end(self, period: int) -> int:
        return self.begun + self.shortest

    def _kept(self) -> Sequence[str]:
        return "updates", "refreshes", "next_update", "mean", "small", "begun"


def _size(observation: Mapping[str, Any]) -> float:
    """The mean size of the differences of one observation: a number, an array or a tensor."""
    found: Any = observation.get("td")
    if hasattr(found, "detach"):
        found = found.detach().double().abs().mean().item()
    try:
        size = float(np.abs(np.asarray(found, np.float64)).mean())
    except (TypeError, ValueError):
        size = math.nan
    if not math.isfinite(size):
        raise InvalidObservation(
            f"td is {observation.get('td')!r}", "give finite temporal differences, or their mean size"
        )
    return size
