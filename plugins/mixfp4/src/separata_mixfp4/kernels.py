"""The four methods as pure functions of a tensor, and their float64 twins."""

from __future__ import annotations

from torch import Tensor

from .quantizer import fake_quantize
from .reference import fake_quantize_reference


def mixfp4(x: Tensor) -> Tensor:
    """Round a ``... x K`` tensor to MixFP4: each block of 16 to E2M1 or to -7..7, whichever is nearer."""
    return fake_quantize(x)


def mixfp4_reference(x: Tensor) -> Tensor:
    """``mixfp4`` element by element, in float64."""
    return fake_quantize_reference(x)


def nvfp4(x: Tensor) -> Tensor:
    """Round a ``... x K`` tensor to NVFP4: every block of 16 to E2M1."""
    return fake_quantize(x, method="nvfp4")


def nvfp4_reference(x: Tensor) -> Tensor:
    """``nvfp4`` element by element, in float64."""
    return fake_quantize_reference(x, method="nvfp4")


def nvint4(x: Tensor) -> Tensor:
    """Round a ``... x K`` tensor to NVINT4: every block of 16 to -7..7."""
    return fake_quantize(x, method="nvint4")


def nvint4_reference(x: Tensor) -> Tensor:
    """``nvint4`` element by element, in float64."""
    return fake_quantize_reference(x, method="nvint4")


def fouroversix(x: Tensor) -> Tensor:
    """Round a ``... x K`` tensor to E2M1 with each block's largest at 6 or at 4 (Four Over Six, arXiv 2512.02010)."""
    return fake_quantize(x, method="fouroversix")


def fouroversix_reference(x: Tensor) -> Tensor:
    """``fouroversix`` element by element, in float64."""
    return fake_quantize_reference(x, method="fouroversix")
