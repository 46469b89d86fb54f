from .config import NileConfig as NileConfig
from .estimator import MeanEstimator as MeanEstimator
from .kernel import soft_threshold as soft_threshold
from .model import LinearModel as LinearModel
from .scheduler import AverageScheduler as AverageScheduler
from .trainer import RegressionTrainer as RegressionTrainer

__all__: list[str]
