"""How long an iteration takes: straight lines in its tokens, fitted to measured steps."""

from __future__ import annotations

import csv
import json
import math
import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Self

import numpy as np
from scipy.interpolate import PchipInterpolator
from scipy.special import gammaln

from separata.files import atomic_file

from .errors import InvalidProfile, InvalidSetting, PoorFit

PHASES = ("prefill", "decode", "mixed")
GRID = 256
MIN_R2 = 0.9
CONSTANTS = ("alpha_prefill", "beta_prefill", "alpha_decode", "beta_decode", "alpha_mixed")


class TimingModel:
    """Fits ``alpha + beta * tokens`` for prefill and decode, and a slope that varies with the decode share if mixed.

    Args:
        r2_warning: A fit below this R² warns that the linear model does not describe the engine.

    Attributes:
        alpha_prefill_, beta_prefill_, alpha_decode_, beta_decode_, alpha_mixed_: Seconds, and seconds a token.
        shares_, slopes_: The decode shares and the mixed slopes at them; between them a monotone cubic.
        r2_: Phase to R².
    """

    def __init__(self, r2_warning: float = MIN_R2) -> None:
        self.r2_warning = r2_warning

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The constructor's parameters by name."""
        return {"r2_warning": self.r2_warning}

    def set_params(self, **params: Any) -> Self:
        """Change parameters and return self."""
        for name, value in params.items():
            if name != "r2_warning":
                raise InvalidSetting(f"{name} is no parameter", "the parameter is r2_warning")
            self.r2_warning = value
        return self

    def fit(self, profile: Iterable[Mapping[str, Any]] | str | Path) -> Self:
        """Learn from measured steps.

        Args:
            profile: Rows with ``phase`` (prefill, decode, mixed), ``tokens``, ``seconds`` and, if mixed,
                ``decode_share``; or a CSV file of them.

        Raises:
            InvalidProfile: If a phase is missing, a row can't be read, or a time does not grow with tokens.
        """
        rows = _rows(profile)
        r2: dict[str, float] = {}
        lines: dict[str, tuple[float, ...]] = {}
        for phase in ("prefill", "decode"):
            tokens, seconds, _ = _columns(rows, phase)
            lines[phase], r2[phase] = _line(np.stack([np.ones_like(tokens), tokens], 1), seconds)
        tokens, seconds, shares = _columns(rows, "mixed")
        grid, group = np.unique(np.round(shares, 6), return_inverse=True)
        design = np.concatenate([np.ones((len(tokens), 1)), tokens[:, None] * np.eye(len(grid))[group]], 1)
        found, r2["mixed"] = _line(design, seconds)
        for phase, score in r2.items():
            if score < self.r2_warning:
                warnings.warn(
                    f"{phase}: R² is {score:.2f}, steps are not linear in tokens", PoorFit, stacklevel=2
                )
        values = (*lines["prefill"], *lines["decode"], found[0])
        self._set(*values, shares=grid, slopes=np.asarray(found[1:]), r2=r2)
        return self

    @classmethod
    def from_constants(
        cls,
        *,
        alpha_prefill: float,
        beta_prefill: float,
        alpha_decode: float,
        beta_decode: float,
        alpha_mixed: float | None = None,
        mixed: Mapping[float, float] | None = None,
    ) -> Self:
        """A model of known constants, in seconds.

        Args:
            alpha_prefill: Fixed time of a prefill iteration.
            beta_prefill: Time a token of it.
            alpha_decode: Fixed time of a decode iteration.
            beta_decode: Time a token of it.
            alpha_mixed: Fixed time of a mixed iteration; that of decode if not given.
            mixed: Decode share to time a token; without interference, the weighted mean, if not given.
        """
        values = mixed or {0.0: beta_prefill, 1.0: beta_decode}
        made = cls()
        shares = np.asarray(sorted(values))
        alpha = alpha_decode if alpha_mixed is None else alpha_mixed
        slopes = np.asarray([values[share] for share in shares])
        made._set(
            alpha_prefill, beta_prefill, alpha_decode, beta_decode, alpha, shares=shares, slopes=slopes, r2={}
        )
        return made

    def beta_mixed(self, decode_share: float) -> float:
        """Time a token of a mixed iteration at a share of decode tokens from 0 to 1."""
        # A table, since the simulator asks in every iteration.
        place = min(max(decode_share, 0.0), 1.0) * GRID
        low = min(int(place), GRID - 1)
        return self._table[low] + (place - low) * (self._table[low + 1] - self._table[low])

    def effective_beta_mixed(self, occupancy: float, prompts: Any, output_mean: float) -> float:
        """Time a token of a run of mixed batching, which is what the closed forms ask for.

        Single iterations have other decode shares than the run: prompts arrive in some iterations, a Poisson number
        at a time, and none in others. This is the expectation over that number and over the prompts' lengths.

        Args:
            occupancy: Requests under way.
            prompts: Prompt lengths, typical ones, shape (n,).
            output_mean: Mean output length.

        Returns:
            The slope ``beta`` with which ``alpha_mixed + beta * tokens`` is the mean time of an iteration.
        """
        lengths = np.asarray(prompts, np.float64)
        rate = occupancy / (1 + output_mean)
        decoding = max(occupancy - rate, 1e-9)
        counts = np.arange(1, math.ceil(rate + 6 * math.sqrt(rate)) + 7)
        chance = np.exp(counts * math.log(rate) - rate - gammaln(counts + 1))
        # A single prompt has the lengths given; several together are about normal, and two points keep the variance.
        mean, std = float(lengths.mean()), float(lengths.std())
        # Sixteen quantiles; np.quantile takes ten times as long, in what is done again and again while serving.
        places = (np.arange(16) + 0.5) / 16 * (len(lengths) - 1)
        single = np.interp(places, np.arange(len(lengths)), np.sort(lengths))
        ends = np.array([-1.0, 1.0]) * std
        several = np.maximum(counts[1:, None] * mean + np.sqrt(counts[1:, None]) * ends, 1.0)
        total = np.concatenate([single, several.ravel()])
        weight = np.concatenate([np.full(16, chance[0] / 16), np.repeat(chance[1:] / 2, 2)])
        slopes = np.interp(decoding / (decoding + total), np.linspace(0, 1, GRID + 1), self._table)
        busy = float(weight @ (self.alpha_mixed_ + slopes * (decoding + total)))
        idle = math.exp(-rate) * (self.alpha_decode_ + self.beta_decode_ * decoding)
        return (busy + idle - self.alpha_mixed_) / (decoding + rate * mean)

    def seconds(self, prefill_tokens: int, decode_tokens: int) -> float:
        """Time of an iteration with these tokens; one of a single kind takes that phase's line."""
        if not prefill_tokens:
            return self.alpha_decode_ + self.beta_decode_ * decode_tokens
        if not decode_tokens:
            return self.alpha_prefill_ + self.beta_prefill_ * prefill_tokens
        total = prefill_tokens + decode_tokens
        return self.alpha_mixed_ + self.beta_mixed(decode_tokens / total) * total

    def save(self, path: str | Path) -> None:
        """Write the constants as JSON."""
        state = {name: getattr(self, name + "_") for name in CONSTANTS}
        state["mixed"] = [
            list(pair) for pair in zip(self.shares_.tolist(), self.slopes_.tolist(), strict=True)
        ]
        state["r2"] = self.r2_
        with atomic_file(Path(path)) as temporary:
            temporary.write_text(json.dumps(state, indent=2) + "\n")

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read what ``save`` wrote.

        Raises:
            InvalidProfile: If the file lacks a constant.
        """
        try:
            state = json.loads(Path(path).read_text())
            values = [float(state[name]) for name in CONSTANTS]
            pairs = np.asarray(state["mixed"], np.float64).reshape(-1, 2)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise InvalidProfile(
                f"{path} holds no timing: {error!r}",
                "write it with `separata ebplus profile … --out timing.json`",
            ) from error
        made = cls()
        made._set(*values, shares=pairs[:, 0], slopes=pairs[:, 1], r2=dict(state.get("r2", {})))
        return made

    def _set(
        self,
        alpha_prefill: float,
        beta_prefill: float,
        alpha_decode: float,
        beta_decode: float,
        alpha_mixed: float,
        *,
        shares: Any,
        slopes: Any,
        r2: dict[str, float],
    ) -> None:
        values = (alpha_prefill, beta_prefill, alpha_decode, beta_decode, alpha_mixed)
        for name, value in (*zip(CONSTANTS, values, strict=True), ("beta_mixed", float(min(slopes)))):
            # A prefill without a fixed cost is a limit of interest; everything else must take time.
            if not (value > 0 or (value == 0 and name == "alpha_prefill")):
                raise InvalidProfile(
                    f"{name} is {value:.3g}",
                    "times are positive: measure more steps, over a wider range of tokens",
                )
        self.alpha_prefill_, self.beta_prefill_ = float(alpha_prefill), float(beta_prefill)
        self.alpha_decode_, self.beta_decode_ = float(alpha_decode), float(beta_decode)
        self.alpha_mixed_ = float(alpha_mixed)
        self.shares_, self.slopes_, self.r2_ = np.asarray(shares), np.asarray(slopes), r2
        points = np.clip(np.linspace(0, 1, GRID + 1), self.shares_.min(), self.shares_.max())
        if len(self.shares_) > 1:
            self._table: list[float] = PchipInterpolator(self.shares_, self.slopes_)(points).tolist()
        else:
            self._table = [float(self.slopes_[0])] * (GRID + 1)


def _rows(profile: Iterable[Mapping[str, Any]] | str | Path) -> list[Mapping[str, Any]]:
    if not isinstance(profile, str | Path):
        return list(profile)
    try:
        with Path(profile).open(newline="") as file:
            return list(csv.DictReader(file))
    except OSError as error:
        raise InvalidProfile(
            f"{profile} can't be read: {error.strerror}", "give a CSV file of measured steps"
        ) from error


def _columns(rows: list[Mapping[str, Any]], phase: str) -> tuple[Any, Any, Any]:
    found = []
    for number, row in enumerate(rows, 1):
        try:
            if row["phase"] not in PHASES:
                raise ValueError(f"the phase is {row['phase']!r}")
            if row["phase"] == phase:
                share = float(row["decode_share"]) if phase == "mixed" else 0.0
                found.append((float(row["tokens"]), float(row["seconds"]), share))
                if not (found[-1][0] > 0 and found[-1][1] > 0 and 0 <= share <= 1):
                    raise ValueError(f"{dict(row)}")
        except (KeyError, ValueError, TypeError) as error:
            raise InvalidProfile(
                f"row {number} of the profile: {error}",
                "columns are phase (prefill, decode, mixed), tokens, seconds and, if mixed, decode_share",
            ) from error
    if len({tokens for tokens, _, _ in found}) < 2:
        raise InvalidProfile(
            f"the profile has {len(found)} {phase} rows",
            f"measure {phase} steps of at least two numbers of tokens",
        )
    return tuple(np.asarray(found, np.float64).T)


def _line(design: Any, seconds: Any) -> tuple[tuple[float, ...], float]:
    found, *_ = np.linalg.lstsq(design, seconds, rcond=None)
    total = float(((seconds - seconds.mean()) ** 2).sum())
    error = float(((seconds - design @ found) ** 2).sum())
    return tuple(found.tolist()), 1 - error / total if total > 0 else 1.0
