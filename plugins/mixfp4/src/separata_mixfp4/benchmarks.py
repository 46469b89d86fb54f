"""Speed against peers, over growing sizes, in one process."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import torch
from torch import Tensor

from separata.claims import Race, Trial
from separata.errors import PackageMissing

from .quantizer import fake_quantize, quantize
from .reference import fake_quantize_reference

SIZES = (1 << 16, 1 << 18, 1 << 20, 1 << 22)
WIDTH = 1024


def against_nvfp4(trial: Trial) -> Iterator[Race]:
    """Choosing between two grids against rounding to one."""
    for size in SIZES:
        x = gaussian(trial, size)
        yield Race(size, _faking(x, "mixfp4"), _faking(x, "nvfp4"))


def against_torchao(trial: Trial) -> Iterator[Race]:
    """Packing MixFP4 and unpacking it against torchao's NVFP4 doing the same."""
    peer = torchao_nvfp4()
    for size in SIZES[:-1]:
        x = gaussian(trial, size)
        yield Race(size, lambda x=x: quantize(x).dequantize(), lambda x=x: peer(x))  # type: ignore[misc]


def against_reference(trial: Trial) -> Iterator[Race]:
    """Tensors at once against numbers one by one."""
    for size in (1 << 12, 1 << 14):
        x = gaussian(trial, size)
        yield Race(size, _faking(x, "mixfp4"), lambda x=x: fake_quantize_reference(x))  # type: ignore[misc]


def gaussian(trial: Trial, size: int) -> Tensor:
    """A ``size / WIDTH x WIDTH`` tensor of normal numbers."""
    return torch.randn(size // WIDTH, WIDTH, generator=trial.generator())


def torchao_nvfp4() -> Callable[[Tensor], Tensor]:
    """A function that quantises to NVFP4 with torchao and dequantises again.

    Raises:
        PackageMissing: If torchao is not installed.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # On a machine without its GPU extensions torchao says so at length.
        logging.disable(logging.WARNING)
        try:
            torchao: Any = import_module("torchao.prototype.mx_formats.nvfp4_tensor")
        except ImportError as error:
            raise PackageMissing.extra("torchao", "separata-mixfp4[full]") from error
        finally:
            logging.disable(logging.NOTSET)

    def there_and_back(x: Tensor) -> Tensor:
        scale = torchao.per_tensor_amax_to_scale(x.abs().max())
        found: Tensor = torchao.NVFP4Tensor.to_nvfp4(x, per_tensor_scale=scale).dequantize(torch.float32)
        return found

    return there_and_back


def _faking(x: Tensor, method: str) -> Callable[[], object]:
    return lambda: fake_quantize(x, method=method)
