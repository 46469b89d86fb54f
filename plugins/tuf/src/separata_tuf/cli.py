"""The words of ``separata tuf``: plan, audit, tabular, dqn."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from separata import verbs

if TYPE_CHECKING:
    from .bounds import Problem

app = verbs.app("Choose when Q-learning refreshes its target.")

Gamma = Annotated[float, typer.Option(help="Discount, at least 0 and below 1.")]
Noise = Annotated[
    float | None, typer.Option(help="Standard deviation of r + gamma max Q. [default: 1 / (1 - gamma)]")
]
Coverage = Annotated[float, typer.Option(help="Share of updates of the rarest state and action.")]
Span = Annotated[
    float | None, typer.Option(help="Bound on the first values' error. [default: 1 / (1 - gamma)]")
]
Pairs = Annotated[int, typer.Option(help="States times actions, for the worst of them; 0 for any one.")]
UpdateEvery = Annotated[int, typer.Option(min=1, help="Environment steps for each gradient update.")]
Process = Annotated[str, typer.Argument(help="Gymnasium id with a table P, or an .npz with P and R.")]
Names = Annotated[
    str, typer.Option(help="Joined by commas: geometric, constant, anytime, triggered, rate=0.3.")
]
Plot = Annotated[Path | None, typer.Option(help="Draw it, .png or .pdf.")]


@app.command()
def plan(
    *,
    gamma: Gamma = 0.99,
    budget: Annotated[str, typer.Option(help="Gradient updates in all, such as 1e6.")] = "1e6",
    error: Annotated[float | None, typer.Option(help="Error wanted; the budget follows from it.")] = None,
    noise: Noise = None,
    coverage: Coverage = 1.0,
    span: Span = None,
    pairs: Pairs = 0,
    update_every: UpdateEvery = 1,
    plot: Plot = None,
    json: verbs.Json = False,
) -> None:
    """Say which periods make the bound on the error smallest, beside the best equal ones.

    Far from the optimum a coarse Bellman step moves the right way; near it each step must be more exact, so
    periods grow.

    Example: separata tuf plan --gamma 0.9 --budget 1e6 --noise 1 --coverage 0.08
    """
    from .bounds import plan_budget, recommend

    problem = _problem(gamma, noise, coverage, span, pairs)
    found = plan_budget(problem, _count(budget)) if error is None else recommend(problem, error)
    if plot:
        from . import plots

        plots.periods(found, plot)
    kinds = ("growing", found.lengths, found.bound), ("best equal", found.equal_lengths, found.equal_bound)
    rows = [
        {
            "periods": kind,
            "number": len(lengths),
            "first": int(lengths[0]),
            "last": int(lengths[-1]),
            "bias": bound.bias,
            "noise": bound.noise,
            "bound": bound.total,
        }
        for kind, lengths, bound in kinds
    ]
    if json:
        verbs.show(
            {
                "budget": found.budget,
                "environment_steps": found.budget * update_every,
                "schedules": rows,
                "lengths": found.lengths.tolist(),
            },
            json=True,
        )
        return
    verbs.show(rows, title=f"{found.budget} updates, {found.budget * update_every} environment steps")


@app.command()
def audit(
    *,
    interval: Annotated[
        int, typer.Option(min=1, help="target_update_interval, in environment steps.")
    ] = 10_000,
    steps: Annotated[str, typer.Option(help="Environment steps in all, such as 1e6.")] = "1e6",
    update_every: UpdateEvery = 4,
    gamma: Gamma = 0.99,
    noise: Noise = None,
    coverage: Coverage = 1.0,
    span: Span = None,
    pairs: Pairs = 0,
    json: verbs.Json = False,
) -> None:
    """Say what a constant interval loses against the best one and against growing periods.

    Example: separata tuf audit --interval 10000 --steps 1e6 --noise 0.1
    """
    from .bounds import audit as run

    problem = _problem(gamma, noise, coverage, span, pairs)
    found = run(problem, max(1, interval // update_every), _count(steps) // update_every)
    found["best_interval"] *= update_every
    verbs.show(found, json=json, title="Interval in environment steps, errors in the unit of rewards")


@app.command()
def tabular(
    process: Process,
    *,
    gamma: Gamma = 0.95,
    budgets: Annotated[str, typer.Option(help="Updates, joined by commas.")] = "3e4,1e5,3e5",
    schedules: Names = "geometric,constant",
    counts: Annotated[str, typer.Option(help="Numbers of periods to try.")] = "5,10,20,40,80,120",
    sampling: Annotated[str, typer.Option(help="uniform, generative or behaviour.")] = "uniform",
    seeds: Annotated[int, typer.Option(min=1, help="Runs of each.")] = 5,
    first: Annotated[int, typer.Option(min=1, help="First period of anytime, interval of triggered.")] = 1000,
    seed: verbs.Seed = 0,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Write the table here, .csv.")] = None,
    plot: Plot = None,
    json: verbs.Json = False,
) -> None:
    """Learn a known process with several schedules, each at its best number of periods, and hold them against Q*.

    Example: separata tuf tabular FrozenLake-v1 --plot errors.png
    """
    import attrs

    from .comparison import compare

    names = schedules.split(",")
    wanted = [_count(budget) for budget in budgets.split(",")]
    scores = compare(
        _process(process),
        gamma,
        wanted,
        names,
        counts=[_count(count) for count in counts.split(",")],
        seeds=range(seed, seed + seeds),
        sampling=sampling,  # type: ignore[arg-type]
        first=first,
    )
    total = len(wanted) * len(names)
    rows = [attrs.asdict(score) for score in verbs.progress(scores, "learning", total=total)]
    if out:
        _write(rows, out)
    if plot:
        from . import plots

        plots.errors(rows, plot)
    verbs.show(rows, json=json, title=f"{process}, gamma {gamma}: sup norm of Q - Q*, mean of {seeds} runs")


@app.command()
def dqn(
    env: Annotated[str, typer.Argument(help="Gymnasium id with discrete actions.")],
    *,
    steps: Annotated[int, typer.Option(min=1000, help="Environment steps.")] = 20_000,
    schedule: Annotated[str, typer.Option(help="geometric, constant or triggered.")] = "geometric",
    first: Annotated[int, typer.Option(min=1, help="Updates in the first, or in each, period.")] = 100,
    gamma: Gamma = 0.99,
    episodes: Annotated[int, typer.Option(min=1, help="Episodes to judge the agent on.")] = 20,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Save stable-baselines3's agent here, .zip.")
    ] = None,
    seed: verbs.Seed = 0,
    json: verbs.Json = False,
) -> None:
    """Train stable-baselines3's DQN under a schedule, and judge the agent that comes out.

    Example: separata tuf dqn CartPole-v1 --steps 5000
    """
    from .agents import judge, make_schedule, train

    agent, callback = train(env, make_schedule(schedule, first, gamma), steps, gamma=gamma, seed=seed)
    mean, spread = judge(agent, env, episodes, seed)
    if out:
        agent.save(out)
    verbs.show(
        {
            "env": env,
            "schedule": schedule,
            "updates": agent._n_updates,
            "refreshes": len(callback.refreshed),
            "last_period": callback.schedule.next_update - (callback.refreshed or [0])[-1],
            "mean_return": mean,
            "std_error": spread,
        },
        json=json,
    )


def _problem(gamma: float, noise: float | None, coverage: float, span: float | None, pairs: int) -> Problem:
    from .bounds import Problem

    given = {"noise": noise, "span": span}
    return Problem(
        gamma=gamma,
        coverage=coverage,
        pairs=pairs,
        **{name: value for name, value in given.items() if value is not None},
    )


def _process(name: str) -> Any:
    from .errors import InvalidProcess
    from .processes import MDP

    if name.endswith(".npz"):
        return MDP.read(name)
    import gymnasium

    try:
        return MDP.from_env(gymnasium.make(name))
    except gymnasium.error.Error as error:
        raise InvalidProcess(
            str(error), "name FrozenLake-v1, CliffWalking-v1, Taxi-v4, or an .npz"
        ) from error


def _count(text: str) -> int:
    from .errors import InvalidSetting

    try:
        number = float(text)
    except ValueError:
        number = -1
    if not 1 <= number < 2**62 or number % 1:
        raise InvalidSetting(f"a number of updates is {text!r}", "give a whole number such as 30000 or 3e4")
    return int(number)


def _write(rows: list[dict[str, Any]], out: Path) -> None:
    import csv

    from separata.files import atomic_file

    with atomic_file(out) as partial, partial.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
