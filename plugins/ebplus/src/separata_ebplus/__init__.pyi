from . import errors as errors
from .advice import Advice as Advice
from .advice import advise as advise
from .closed_forms import crossover as crossover
from .closed_forms import delta_theta as delta_theta
from .closed_forms import exclusive_seconds as exclusive_seconds
from .closed_forms import mixed_seconds as mixed_seconds
from .closed_forms import safe_batch as safe_batch
from .closed_forms import theta0 as theta0
from .closed_forms import threshold as threshold
from .config import EBPlusConfig as EBPlusConfig
from .hazard import HazardEstimator as HazardEstimator
from .observation import Decision as Decision
from .observation import Finished as Finished
from .observation import Observation as Observation
from .observation import Waiting as Waiting
from .schedulers import EBPlus as EBPlus
from .schedulers import ExclusiveBatching as ExclusiveBatching
from .schedulers import MixedBatching as MixedBatching
from .simulator import Simulator as Simulator
from .timing import TimingModel as TimingModel
from .traces import Trace as Trace
from .traces import read_trace as read_trace

__all__ = [
    "Advice",
    "Decision",
    "EBPlus",
    "EBPlusConfig",
    "ExclusiveBatching",
    "Finished",
    "HazardEstimator",
    "MixedBatching",
    "Observation",
    "Simulator",
    "TimingModel",
    "Trace",
    "Waiting",
    "advise",
    "crossover",
    "delta_theta",
    "errors",
    "exclusive_seconds",
    "mixed_seconds",
    "read_trace",
    "safe_batch",
    "theta0",
    "threshold",
]
