from .conformance import Report as Report
from .conformance import check as check
from .examples import EstimatorExample as EstimatorExample
from .examples import KernelExample as KernelExample
from .examples import ModelExample as ModelExample
from .examples import SchedulerExample as SchedulerExample
from .examples import TrainerExample as TrainerExample
from .pytest_plugin import conformance_tests as conformance_tests
from .site import Site as Site

__all__: list[str]
