from . import errors as errors
from . import peers as peers
from .classifier import MoDEXClassifier as MoDEXClassifier
from .distribution import ExtendedFlexibleDirichlet as ExtendedFlexibleDirichlet
from .head import MoDEXHead as MoDEXHead
from .head import MoDEXNetwork as MoDEXNetwork
from .head import modexify as modexify
from .loss import modex_loss as modex_loss
from .metrics import calibration as calibration
from .metrics import separation as separation
from .moments import efd_covariance as efd_covariance
from .moments import efd_moments as efd_moments
from .saving import load_network as load_network
from .saving import save_network as save_network
from .texts import MoDEXTextClassifier as MoDEXTextClassifier
from .tuning import MoDEXTrainer as MoDEXTrainer
from .tuning import TuneConfig as TuneConfig

__all__ = [
    "ExtendedFlexibleDirichlet",
    "MoDEXClassifier",
    "MoDEXHead",
    "MoDEXNetwork",
    "MoDEXTextClassifier",
    "MoDEXTrainer",
    "TuneConfig",
    "calibration",
    "efd_covariance",
    "efd_moments",
    "errors",
    "load_network",
    "modex_loss",
    "modexify",
    "peers",
    "save_network",
    "separation",
]
