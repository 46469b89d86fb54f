from . import errors as errors
from .config import OEAConfig as OEAConfig
from .evaluation import compare as compare
from .evaluation import profile as profile
from .expectation import estimate_T as estimate_T
from .expectation import expected_experts as expected_experts
from .expectation import record_scores as record_scores
from .expert_parallel import owned_hits as owned_hits
from .expert_parallel import owned_part as owned_part
from .latency import LatencyFit as LatencyFit
from .latency import LatencyLine as LatencyLine
from .latency import fit_latency as fit_latency
from .patching import ExpertActivation as ExpertActivation
from .patching import patch_moe as patch_moe
from .routers import Scores as Scores
from .routers import register_router as register_router
from .routing import Routing as Routing
from .routing import route as route
from .scheduler import BatchScheduler as BatchScheduler
from .scheduler import StepScores as StepScores

__all__ = [
    "BatchScheduler",
    "ExpertActivation",
    "LatencyFit",
    "LatencyLine",
    "OEAConfig",
    "Routing",
    "Scores",
    "StepScores",
    "compare",
    "errors",
    "estimate_T",
    "expected_experts",
    "fit_latency",
    "owned_hits",
    "owned_part",
    "patch_moe",
    "profile",
    "record_scores",
    "register_router",
    "route",
]
