"""The quantisers by name: what a weight is stored as, and how numbers become that.

>>> import torch
>>> stored = quantizer("fp8_e4m3").quantize(torch.randn(8, 64))
>>> {name: tuple(part.shape) for name, part in stored.items()}
{'codes': (8, 64), 'scales': (8, 1)}
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, Protocol, TypeAlias, get_args

import attrs
import torch
from torch import Tensor

from separata_mixfp4.formats import E4M3FN, INT4, INT8, Rounding
from separata_mixfp4.quantizer import quantize as quantize_blocks
from separata_mixfp4.scaling import Granularity, ScaledFormat, ScaledTensor
from separata_mixfp4.tensor import MixFP4Tensor

from .errors import InvalidSetting, ShapeMismatch

Name: TypeAlias = Literal["fp8_e4m3", "int8", "int4", "mixfp4", "nvfp4"]
Parts: TypeAlias = Mapping[str, Tensor]

BLOCK = 16
_ELEMENTS = {"fp8_e4m3": E4M3FN, "int8": INT8, "int4": INT4}
_USUAL: dict[str, Granularity] = {"fp8_e4m3": "row", "int8": "row", "int4": 128}


class Quantizer(Protocol):
    """Numbers to stored parts and back."""

    @property
    def label(self) -> str:
        """Name and granularity, from which ``quantizer`` makes the same one again."""

    @property
    def by_row(self) -> bool:
        """Whether rows have scales of their own, so that some can be stored without the others."""

    def check(self, shape: torch.Size, name: str = "a weight") -> None:
        """Refuse a shape that can't be stored."""

    def quantize(
        self,
        x: Tensor,
        rounding: Rounding = "nearest_even",
        generator: torch.Generator | None = None,
        stored: Parts | None = None,
    ) -> dict[str, Tensor]:
        """The parts that a tensor is stored as; ``stored`` are those of its last value."""

    def dequantize(self, parts: Parts, shape: torch.Size, dtype: torch.dtype) -> Tensor:
        """The numbers that parts stand for."""


@attrs.frozen
class Scaled:
    """Codes of one element format, and a float32 scale for the tensor, each row or each group.

    Args:
        name: ``fp8_e4m3``, ``int8`` or ``int4``.
        granularity: ``tensor``, ``row`` or the size of a group.
        frozen: Whether the scales of the first value are kept: numbers that outgrow them are cut off.
    """

    name: str
    granularity: Granularity
    frozen: bool = False

    @property
    def form(self) -> ScaledFormat:
        """Element format and granularity."""
        return ScaledFormat(_ELEMENTS[self.name], self.granularity)

    @property
    def label(self) -> str:
        """Name and granularity, from which ``quantizer`` makes the same one again."""
        return f"{self.name}:{self.granularity}" + (":frozen" if self.frozen else "")

    @property
    def by_row(self) -> bool:
        """Whether rows have scales of their own."""
        return self.granularity != "tensor"

    def check(self, shape: torch.Size, name: str = "a weight") -> None:
        """Refuse a shape that can't be stored."""
        size = self.granularity
        if isinstance(size, int):
            _check_groups(shape, size, name)
        if self.form.element.bits <= 4 and shape[-1] % 2:
            raise ShapeMismatch(
                f"{name} has rows of {shape[-1]}",
                f"{self.name} puts two numbers in a byte: keep it out with skip",
            )

    def quantize(
        self,
        x: Tensor,
        rounding: Rounding = "nearest_even",
        generator: torch.Generator | None = None,
        stored: Parts | None = None,
    ) -> dict[str, Tensor]:
        """The parts that a tensor is stored as; ``stored`` are those of its last value."""
        scales = stored["scales"] if self.frozen and stored is not None else None
        done = self.form.quantize(x, scales, rounding, generator)
        return {"codes": done.codes, "scales": done.scales}

    def dequantize(self, parts: Parts, shape: torch.Size, dtype: torch.dtype) -> Tensor:
        """The numbers that parts stand for."""
        return ScaledTensor(parts["codes"], parts["scales"], shape, self.form).dequantize(dtype)


@attrs.frozen
class Blocked:
    """Four-bit blocks of 16 with E4M3 scales and one float32 scale for all, as ``separata-mixfp4`` makes them.

    Args:
        name: ``mixfp4`` or ``nvfp4``.
    """

    name: str

    @property
    def label(self) -> str:
        """Name and granularity, from which ``quantizer`` makes the same one again."""
        return f"{self.name}:{BLOCK}"

    @property
    def by_row(self) -> bool:
        """No: one scale stands above all blocks."""
        return False

    def check(self, shape: torch.Size, name: str = "a weight") -> None:
        """Refuse a shape that can't be stored."""
        _check_groups(shape, BLOCK, name)

    def quantize(
        self,
        x: Tensor,
        rounding: Rounding = "nearest_even",
        generator: torch.Generator | None = None,
        stored: Parts | None = None,
    ) -> dict[str, Tensor]:
        """The parts that a tensor is stored as; ``stored`` are those of its last value."""
        done = quantize_blocks(x, method=self.name, group=BLOCK, rounding=rounding, generator=generator)
        return {"codes": done.codes, "scales": done.scales, "global_scale": done.global_scale}

    def dequantize(self, parts: Parts, shape: torch.Size, dtype: torch.dtype) -> Tensor:
        """The numbers that parts stand for."""
        stored = MixFP4Tensor(parts["codes"], parts["scales"], parts["global_scale"], shape, BLOCK)
        return stored.dequantize(dtype)


def quantizer(name: str, granularity: Granularity | str | None = None, *, frozen: bool = False) -> Quantizer:
    """A quantiser by its name.

    Args:
        name: ``fp8_e4m3``, ``int8``, ``int4``, ``mixfp4`` or ``nvfp4``; or the ``label`` of a quantiser.
        granularity: ``tensor``, ``row`` or the size of a group, as a number or its text. If not given, FP8 and INT8
            have a scale for each row and INT4 one for each group of 128; the other two always have blocks of 16.
        frozen: Keep the scales that a weight has when it is converted (FP8 and integers).

    Raises:
        InvalidSetting: If there is none of that name, or it has no such granularity.
    """
    name, *rest = name.split(":")
    if rest:
        granularity, frozen = rest[0], "frozen" in rest
    if name not in get_args(Name):
        raise InvalidSetting(f"there is no quantiser {name!r}", f"quantisers are {', '.join(get_args(Name))}")
    if isinstance(granularity, str) and granularity.isdecimal():
        granularity = int(granularity)
    if name in _ELEMENTS:
        granularity = _USUAL[name] if granularity is None else granularity
        if granularity not in ("tensor", "row") and not (isinstance(granularity, int) and granularity > 0):
            raise InvalidSetting(
                f"granularity is {granularity!r}",
                "it is tensor, row, or the number of neighbours with one scale",
            )
        return Scaled(name, granularity, frozen)  # type: ignore[arg-type]
    if granularity not in (None, BLOCK) or frozen:
        raise InvalidSetting(
            f"granularity {granularity} for {name}{', frozen' if frozen else ''}",
            f"{name} has blocks of {BLOCK} whose scales follow the weights: give neither",
        )
    return Blocked(name)


def _check_groups(shape: torch.Size, size: int, name: str) -> None:
    if shape[-1] % size:
        raise ShapeMismatch(
            f"{name} has rows of {shape[-1]}, which {size} does not divide",
            "choose another granularity, keep it out with skip, or pass mismatch='row' or 'skip'",
        )
