"""Exact moments against enumeration, derivatives and simulation."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path

import attrs
import numpy as np
import pytest

from separata_tpg import MDP, errors, exact, truncated
from separata_tpg.simulators import run, switchback


def test_the_whole_future_gives_the_policy_gradient(process: MDP) -> None:
    for p in (0.5, 0.2):
        # Five-point rule: its error is h^4, below rounding / h.
        h = 1e-2
        value = [exact.value(process, p + step * h) for step in (-2, -1, 1, 2)]
        slope = (value[0] - 8 * value[1] + 8 * value[2] - value[3]) / (12 * h)
        assert exact.mean(process, 29, p) == pytest.approx(slope, abs=1e-7)
        assert exact.mean(process, 28, p) == pytest.approx(slope, abs=1e-2)


@pytest.mark.parametrize(("k", "p"), [(0, 0.5), (1, 0.3), (2, 0.5), (3, 0.6)])
def test_mean_and_variance_are_those_of_all_paths(k: int, p: float, process: MDP) -> None:
    short = attrs.evolve(
        process, transitions=process.transitions[:4], rewards=process.rewards[:4], horizon=4, noise=0.0
    )
    first = second = 0.0
    for arms in product((0, 1), repeat=4):
        for states in product(range(3), repeat=4):
            chance = short.initial[states[0]] * np.prod([p if arm else 1 - p for arm in arms])
            for t in range(3):
                chance *= short.transitions[t, arms[t], states[t], states[t + 1]]
            outcomes = np.array([short.rewards[t, arms[t], states[t]] for t in range(4)])
            value = float(truncated(outcomes, arms, p, k).value)
            first += chance * value
            second += chance * value**2
    assert exact.mean(short, k, p) == pytest.approx(first, abs=1e-12)
    assert exact.variance(short, k, p) == pytest.approx(second - first**2, rel=1e-11)


def test_noise_and_time_enter_the_variance_as_simulated(process: MDP, random: np.random.Generator) -> None:
    arms = switchback(20_000, 30, 1, 0.5, random)
    value = truncated(run(process, arms, random), arms, 0.5, 2).value
    assert abs(value.mean() - exact.mean(process, 2)) < 4 * value.std() / 20_000**0.5
    # Four spreads of a variance over 20 000 nearly normal runs.
    assert value.var() == pytest.approx(exact.variance(process, 2), rel=0.05)


def test_the_effect_is_that_of_pure_arms(process: MDP, random: np.random.Generator) -> None:
    arms = np.repeat([0, 1], 20_000)[:, None].repeat(30, axis=1)
    outcomes = run(process, arms, random).mean(-1)
    simulated = outcomes[20_000:].mean() - outcomes[:20_000].mean()
    assert abs(simulated - exact.gate(process)) < 4 * outcomes.std() * (2 / 20_000) ** 0.5


@pytest.mark.parametrize("k", [0, 3])
def test_with_baseline_the_mean_stays(k: int, process: MDP, random: np.random.Generator) -> None:
    arms = switchback(20_000, 30, 1, 0.5, random)
    value = truncated(run(process, arms, random), arms, 0.5, k, baseline="past").value
    assert abs(value.mean() - exact.mean(process, k)) < 4 * value.std() / 20_000**0.5


def test_a_process_is_read_from_json(tmp_path: Path) -> None:
    plain = {"transitions": [[[0.5, 0.5], [1, 0]]] * 2, "rewards": [[0, 1], [1, 2]], "horizon": 7}
    (tmp_path / "mdp.json").write_text(json.dumps(plain))
    found = MDP.read(tmp_path / "mdp.json")
    assert (found.horizon, found.initial.tolist()) == (7, [0.5, 0.5])
    assert exact.gate(found) == pytest.approx(1)


@pytest.mark.parametrize(
    "fields",
    [
        {"transitions": np.full((2, 2, 2), 0.4), "rewards": np.ones((2, 2)), "horizon": 3},
        {"transitions": np.full((2, 2, 2), 0.5), "rewards": np.ones((2, 2))},
        {"transitions": np.full((2, 2, 2), 0.5), "rewards": np.ones((2, 3)), "horizon": 3},
        {"transitions": np.full((3, 2, 2, 2), 0.5), "rewards": np.ones((4, 2, 2))},
        {"transitions": np.full((2, 2, 2), 0.5), "rewards": np.ones((2, 2)), "horizon": 3, "initial": [1, 1]},
        {"transitions": "chances", "rewards": np.ones((2, 2)), "horizon": 3},
    ],
)
def test_what_is_no_process_is_refused(fields: dict[str, object]) -> None:
    with pytest.raises(errors.InvalidProcess):
        MDP(**fields)  # type: ignore[arg-type]


def test_a_large_k_is_refused(process: MDP) -> None:
    with pytest.raises(errors.InvalidSetting, match="up to 14"):
        exact.variance(process, 15)
