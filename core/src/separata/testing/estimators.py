"""What every estimator keeps: scikit-learn's habits, and intervals that cover the truth."""

from __future__ import annotations

import math
from copy import deepcopy
from typing import Any

import attrs
import torch

from separata.records import Offer

from .checks import NotOffered, need, same, suite
from .examples import EstimatorExample


@attrs.frozen
class EstimatorSubject:
    """An estimator on trial."""

    example: EstimatorExample

    def data(self) -> tuple[Any, ...]:
        """The example's arguments of ``fit``."""
        return self.example.data(torch.Generator().manual_seed(0))

    def fitted(self) -> Any:
        """An estimator after ``fit``."""
        return self.example.make().fit(*self.data())


def keeps_its_parameters(subject: EstimatorSubject) -> None:
    """The constructor stores its parameters untouched, and ``get_params`` builds the same one again."""
    made = subject.example.make()
    params = made.get_params()
    for name, value in params.items():
        need(getattr(made, name, None) is value, f"parameter {name} is not stored as it was given")
    need(
        same(type(made)(**params).get_params(), params), "built again from get_params it has other parameters"
    )


def sets_its_parameters(subject: EstimatorSubject) -> None:
    """``set_params`` changes a parameter and returns self; an unknown one is refused."""
    made = subject.example.make()
    params = made.get_params()
    need(made.set_params(**params) is made, "set_params does not return self")
    try:
        made.set_params(no_such_parameter=1)
    except (ValueError, TypeError, AttributeError):
        return
    need(False, "set_params takes a parameter that does not exist")


def fits_and_returns_itself(subject: EstimatorSubject) -> None:
    """``fit`` returns self, and what it learned ends in an underscore and was not there before."""
    made = subject.example.make()
    before = set(vars(made))
    early = [name for name in before if name.endswith("_") and not name.startswith("_")]
    need(not early, f"{', '.join(early)} is there before fit")
    need(made.fit(*subject.data()) is made, "fit does not return self")
    public = [name for name in set(vars(made)) - before if not name.startswith("_")]
    need(any(name.endswith("_") for name in public), "fit learns no attribute that ends in an underscore")
    other = sorted(name for name in public if not name.endswith("_"))
    need(not other, f"fit adds {', '.join(other)}, which does not end in an underscore")


def leaves_parameters_alone(subject: EstimatorSubject) -> None:
    """``fit`` does not change a parameter."""
    made = subject.example.make()
    before = deepcopy(made.get_params())
    made.fit(*subject.data())
    need(same(before, made.get_params()), "fit changes a parameter")


def leaves_data_unchanged(subject: EstimatorSubject) -> None:
    """``fit`` does not change its data in place."""
    data = subject.data()
    before = deepcopy(data)
    subject.example.make().fit(*data)
    need(same(before, data), "fit changes its data in place")


def fits_the_same_again(subject: EstimatorSubject) -> None:
    """Fitted twice on the same data it learns the same, whatever the global random state."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        first = _learned(subject.fitted())
        torch.manual_seed(2)
        made = subject.example.make()
        need(same(first, _learned(made.fit(*subject.data()))), "another estimator learns another thing")
        need(
            same(first, _learned(made.fit(*subject.data()))),
            "a second fit of the same one depends on the first",
        )


def refuses_bad_data(subject: EstimatorSubject) -> None:
    """Data that make no sense are refused with a ValueError."""
    if not subject.example.bad:
        raise NotOffered("the example names no bad data")
    for data in subject.example.bad:
        try:
            subject.example.make().fit(*data)
        except ValueError:
            continue
        need(False, f"it fits {data!r}"[:120])


def covers_the_truth(subject: EstimatorSubject) -> None:
    """Its intervals cover the truth as often as they say, within the noise of the draws."""
    example = subject.example
    if example.inference is None:
        raise NotOffered("the example infers nothing")
    hits = 0
    for seed in range(example.draws):
        estimate, truth = example.inference(torch.Generator().manual_seed(seed))
        low, high = estimate.interval(example.level)
        hits += low <= truth <= high
    # Four standard errors of a binomial share: a right interval fails once in 16,000 runs.
    noise = 4 * math.sqrt(example.level * (1 - example.level) / example.draws)
    found = hits / example.draws
    need(
        abs(found - example.level) <= noise,
        f"{found:.1%} of the {example.level:.0%} intervals cover the truth",
    )


def subject(_: str, __: Offer, example: EstimatorExample) -> EstimatorSubject:
    """The estimator of an example."""
    return EstimatorSubject(example)


CHECKS = suite(
    keeps_its_parameters,
    sets_its_parameters,
    fits_and_returns_itself,
    leaves_parameters_alone,
    leaves_data_unchanged,
    fits_the_same_again,
    refuses_bad_data,
    covers_the_truth,
)


def _learned(estimator: Any) -> dict[str, Any]:
    names = sorted(name for name in vars(estimator) if name.endswith("_") and not name.startswith("_"))
    return {name: getattr(estimator, name) for name in names}
