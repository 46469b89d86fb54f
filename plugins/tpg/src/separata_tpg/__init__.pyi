from . import comparators as comparators
from . import errors as errors
from . import exact as exact
from . import simulators as simulators
from .estimator import TPGEstimator as TPGEstimator
from .estimator import choose as choose
from .exact import MDP as MDP
from .logs import make_log as make_log
from .logs import read_table as read_table
from .longrun import long_run_variance as long_run_variance
from .placebos import placebo as placebo
from .planning import plan as plan
from .policy_gradient import truncated as truncated
from .windows import contributions as contributions
from .windows import forward_sums as forward_sums

__all__ = [
    "MDP",
    "TPGEstimator",
    "choose",
    "comparators",
    "contributions",
    "errors",
    "exact",
    "forward_sums",
    "long_run_variance",
    "make_log",
    "placebo",
    "plan",
    "read_table",
    "simulators",
    "truncated",
]
