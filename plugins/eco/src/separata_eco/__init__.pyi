from . import errors as errors
from .conversion import convert_ as convert_
from .conversion import dequantize_ as dequantize_
from .drift import ErrorDrift as ErrorDrift
from .memory import memory_report as memory_report
from .optimizers import ECOSGD as ECOSGD
from .optimizers import ECOAdamW as ECOAdamW
from .parameter import QuantizedParameter as QuantizedParameter
from .quantizers import quantizer as quantizer
from .storage import load_checkpoint as load_checkpoint
from .storage import load_weights as load_weights
from .storage import save_checkpoint as save_checkpoint
from .storage import save_weights as save_weights
from .training import train as train

__all__ = [
    "ECOSGD",
    "ECOAdamW",
    "ErrorDrift",
    "QuantizedParameter",
    "convert_",
    "dequantize_",
    "errors",
    "load_checkpoint",
    "load_weights",
    "memory_report",
    "quantizer",
    "save_checkpoint",
    "save_weights",
    "train",
]
