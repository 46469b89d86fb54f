from . import errors as errors
from .bounds import Bound as Bound
from .bounds import Plan as Plan
from .bounds import Problem as Problem
from .bounds import audit as audit
from .bounds import error_bound as error_bound
from .bounds import plan_budget as plan_budget
from .bounds import recommend as recommend
from .comparison import compare as compare
from .dqn import maybe_update as maybe_update
from .dqn import target_update_callback as target_update_callback
from .periodic_q import PeriodicQ as PeriodicQ
from .periods import equal_periods as equal_periods
from .periods import growth as growth
from .periods import optimal_periods as optimal_periods
from .processes import MDP as MDP
from .processes import coverage as coverage
from .processes import optimal_values as optimal_values
from .schedules import Constant as Constant
from .schedules import Geometric as Geometric
from .schedules import Listed as Listed
from .schedules import Triggered as Triggered
from .schedules import optimal as optimal

__all__ = [
    "MDP",
    "Bound",
    "Constant",
    "Geometric",
    "Listed",
    "PeriodicQ",
    "Plan",
    "Problem",
    "Triggered",
    "audit",
    "compare",
    "coverage",
    "equal_periods",
    "error_bound",
    "errors",
    "growth",
    "maybe_update",
    "optimal",
    "optimal_periods",
    "optimal_values",
    "plan_budget",
    "recommend",
    "target_update_callback",
]
