from . import errors as errors
from . import formats as formats
from . import packing as packing
from . import scaling as scaling
from .compute import integer_matmul as integer_matmul
from .compute import linear as linear
from .gptq import gptq as gptq
from .model import QuantizedLinear as QuantizedLinear
from .model import quantize_model as quantize_model
from .quantizer import fake_quantize as fake_quantize
from .quantizer import quantize as quantize
from .report import CrestFactorReport as CrestFactorReport
from .storage import load_model as load_model
from .storage import load_tensors as load_tensors
from .storage import save_model as save_model
from .storage import save_tensors as save_tensors
from .tensor import MixFP4Tensor as MixFP4Tensor
from .training import QATRecipe as QATRecipe
from .training import straight_through as straight_through

__all__ = [
    "CrestFactorReport",
    "MixFP4Tensor",
    "QATRecipe",
    "QuantizedLinear",
    "errors",
    "fake_quantize",
    "formats",
    "gptq",
    "integer_matmul",
    "linear",
    "load_model",
    "load_tensors",
    "packing",
    "quantize",
    "quantize_model",
    "save_model",
    "save_tensors",
    "scaling",
    "straight_through",
]
