from . import artifacts as artifacts
from . import cache as cache
from . import claims as claims
from . import config as config
from . import errors as errors
from . import inputs as inputs
from . import verbs as verbs
from .benchmarks import bench as bench
from .claims import prove as prove
from .errors import SeparataError as SeparataError
from .estimates import Estimate as Estimate
from .hookspecs import hookimpl as hookimpl
from .placement import Placement as Placement
from .protocols import Estimator as Estimator
from .protocols import Kernel as Kernel
from .protocols import Model as Model
from .protocols import Scheduler as Scheduler
from .protocols import Trainer as Trainer
from .records import Benchmark as Benchmark
from .records import Claim as Claim
from .records import Command as Command
from .records import Input as Input
from .records import Offer as Offer
from .records import Paper as Paper
from .registry import get as get
from .registry import make as make
from .registry import plugins as plugins
from .search import find as find

__version__: str
__all__: list[str]
