"""Small number formats: sign, exponent and mantissa in at most a byte, with rounding that is exact to the last place.

>>> import torch
>>> E2M1.round(torch.tensor([0.3, -2.5, 2.6, 100.0]))
tensor([ 0.5000, -2.0000,  3.0000,  6.0000])
>>> E4M3FN.decode(E4M3FN.encode(torch.tensor([0.1, -449.0])))
tensor([   0.1016, -448.0000])
"""

from __future__ import annotations

import math
from functools import cache
from typing import Literal, TypeAlias

import attrs
import torch
from torch import Tensor

from .errors import InvalidSetting, NonFinite

Rounding: TypeAlias = Literal["nearest_even", "half_away", "stochastic", "away_from_zero"]
"""What happens between two neighbours of the grid.

``nearest_even``: the nearer one, a tie to the even code (IEEE 754). ``half_away``: a tie to the larger magnitude.
``stochastic``: the upper one with probability (x - lower) / (upper - lower), subnormals included. ``away_from_zero``:
always the larger magnitude.
"""

# Bits of the exponent, places it stands from the right, its bias: of the formats that arithmetic is done in.
_IEEE = {
    torch.float32: (torch.int32, 0x7F800000, 23, 127),
    torch.float64: (torch.int64, 0x7FF0000000000000, 52, 1023),
}
_NATIVE = {"e4m3fn": torch.float8_e4m3fn, "e5m2": torch.float8_e5m2}


@attrs.frozen
class FloatFormat:
    """A binary format of a sign bit, ``exponent_bits`` and ``mantissa_bits``, with subnormals.

    A code is sign, exponent, mantissa from the highest bit down. Exponent 0 is subnormal, as in IEEE 754; integers
    with a sign and a magnitude are the formats with one exponent bit, whose grid is uniform.

    Args:
        name: What it is called.
        exponent_bits: At least 1.
        mantissa_bits: At least 0; all three parts have at most 8 bits.
        bias: What is subtracted from the exponent; ``2^(exponent_bits - 1) - 1`` if not given.
        reserved: How many of the highest magnitudes stand for no finite number.
        infinite: Whether the lowest of those is infinity; the others are NaN.
    """

    name: str
    exponent_bits: int = attrs.field(validator=attrs.validators.ge(1))
    mantissa_bits: int = attrs.field(validator=attrs.validators.ge(0))
    bias: int = attrs.field(
        default=attrs.Factory(lambda self: 2 ** (self.exponent_bits - 1) - 1, takes_self=True), kw_only=True
    )
    reserved: int = attrs.field(default=0, validator=attrs.validators.ge(0), kw_only=True)
    infinite: bool = attrs.field(default=False, kw_only=True)

    def __attrs_post_init__(self) -> None:
        if self.bits > 8 or self.reserved >= 2 ** (self.bits - 1) or self.infinite > self.reserved:
            raise InvalidSetting(
                f"{self.name} has {self.bits} bits, {self.reserved} magnitudes reserved",
                "a format has at most 8 bits and at least one finite magnitude, and infinity is a reserved one",
            )
        if self.lowest_exponent - self.mantissa_bits < -126 or self.max >= 2.0**127:
            raise InvalidSetting(f"{self.name} has bias {self.bias}", "its numbers must be normal in float32")

    @property
    def bits(self) -> int:
        """Bits of a code, with its sign."""
        return 1 + self.exponent_bits + self.mantissa_bits

    @property
    def lowest_exponent(self) -> int:
        """Exponent of the smallest normal number; subnormals lie below it."""
        return 1 - self.bias

    @property
    def smallest(self) -> float:
        """The smallest positive number: the spacing of the subnormals."""
        return math.ldexp(1.0, self.lowest_exponent - self.mantissa_bits)

    @property
    def max(self) -> float:
        """The largest finite number."""
        return self.magnitude(2 ** (self.bits - 1) - 1 - self.reserved)

    def magnitude(self, code: int) -> float:
        """The number that a code without its sign bit stands for."""
        beyond = code - (2 ** (self.bits - 1) - self.reserved)
        if beyond >= 0:
            return math.inf if self.infinite and beyond == 0 else math.nan
        exponent, mantissa = divmod(code, 2**self.mantissa_bits)
        if exponent:
            mantissa += 2**self.mantissa_bits
        return math.ldexp(mantissa, max(exponent, 1) - self.bias - self.mantissa_bits)

    def values(self, dtype: torch.dtype = torch.float32, device: torch.device | str = "cpu") -> Tensor:
        """What each code stands for: a tensor of ``2^bits`` numbers, the negative ones in its second half."""
        return _values(self, dtype, torch.device(device)).clone()

    def round(
        self, x: Tensor, rounding: Rounding = "nearest_even", generator: torch.Generator | None = None
    ) -> Tensor:
        """Round to the format's numbers; what lies beyond the largest becomes the largest, NaN stays NaN.

        Args:
            x: A floating tensor of any shape. Half precision is widened for the arithmetic, which is exact.
            rounding: One of ``Rounding``.
            generator: Draws for ``stochastic``, on the tensor's device; probabilities are exact to 2^-24, those of
                float64 to 2^-53.

        Returns:
            A tensor of the same shape and dtype.

        Raises:
            InvalidSetting: If ``rounding`` is unknown, or stochastic without a generator.
        """
        wide = _wide(x).clamp(-self.max, self.max)
        ulp = self._ulp(wide)
        return (to_integer(wide / ulp, rounding, generator) * ulp).to(x.dtype)

    def encode(
        self, x: Tensor, rounding: Rounding = "nearest_even", generator: torch.Generator | None = None
    ) -> Tensor:
        """Codes of the rounded numbers.

        Args:
            x: A floating tensor of any shape.
            rounding: One of ``Rounding``.
            generator: Draws for ``stochastic``.

        Returns:
            A uint8 tensor of the same shape. The two formats that torch has too have the same codes there:
            ``codes.view(torch.float8_e4m3fn)``.

        Raises:
            NonFinite: If there is a NaN and the format has none.
            InvalidSetting: If ``rounding`` is unknown, or stochastic without a generator.
        """
        if self.reserved <= self.infinite and bool(x.isnan().any()):
            raise NonFinite.found(x, f"{self.name} has no NaN: replace it before rounding")
        # torch goes from float64 to float8 through float32 and so rounds twice; after our own rounding that is exact.
        if rounding == "nearest_even" and self._native and x.dtype != torch.float64:
            return x.clamp(-self.max, self.max).to(self._native).view(torch.uint8)
        return self._codes_of(self.round(_wide(x), rounding, generator))

    def decode(self, codes: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
        """The numbers that codes stand for.

        Args:
            codes: A uint8 tensor of any shape; a format of fewer than 8 bits reads the lowest ones.
            dtype: Of the result.

        Returns:
            A tensor of the same shape.
        """
        flat = codes.reshape(-1).int()
        if self.bits < 8:
            flat &= 2**self.bits - 1
        return torch.index_select(_values(self, dtype, codes.device), 0, flat).view(codes.shape)

    @property
    def _native(self) -> torch.dtype | None:
        """The same format in torch, if it has it."""
        return _NATIVE.get(self.name) if self == _NAMED.get(self.name) else None

    def _ulp(self, wide: Tensor) -> Tensor | float:
        """Distance of the format's numbers around each finite x, from x's own exponent."""
        if self.exponent_bits == 1:
            return self.smallest
        integer, mask, places, bias = _IEEE[wide.dtype]
        lowest = (self.lowest_exponent + bias) << places
        power = (wide.view(integer) & mask).clamp_(min=lowest).view(wide.dtype)
        return power.mul_(math.ldexp(1.0, -self.mantissa_bits))

    def _codes_of(self, rounded: Tensor) -> Tensor:
        """Codes of numbers that are on the grid.

        A number is a whole multiple k of its ulp, and each binade above the first adds 2^mantissa_bits to k; a k
        that was rounded up into the next binade gives the right code by itself.
        """
        if self._native:
            return rounded.to(self._native).view(torch.uint8)
        integer, mask, places, bias = _IEEE[rounded.dtype]
        bits = rounded.view(integer)
        codes = (rounded.abs() / self._ulp(rounded)).to(integer)
        if self.exponent_bits > 1:
            binade = ((bits & mask) >> places).sub_(self.lowest_exponent + bias).clamp_(min=0)
            codes += binade << self.mantissa_bits
        if self.reserved:
            codes = torch.where(rounded.isnan(), 2 ** (self.bits - 1) - 1, codes)
        # Shifted as far as it goes, a negative number is all ones.
        negative = (bits >> (8 * rounded.itemsize - 1)) & 2 ** (self.bits - 1)
        return codes.bitwise_or_(negative).to(torch.uint8)


def integer(bits: int) -> FloatFormat:
    """Whole numbers of a sign and a magnitude: ``-(2^(bits-1) - 1)`` to ``2^(bits-1) - 1``.

    Args:
        bits: 2 to 8.
    """
    return FloatFormat(f"int{bits}", 1, bits - 2, bias=3 - bits)


def to_integer(x: Tensor, rounding: Rounding, generator: torch.Generator | None = None) -> Tensor:
    """Round to whole numbers, which are in the same dtype.

    Args:
        x: A float32 or float64 tensor.
        rounding: One of ``Rounding``.
        generator: Draws for ``stochastic``.
    """
    if rounding == "nearest_even":
        return x.round()
    magnitude = x.abs()
    below = magnitude.floor()
    # The part behind the point is exact; |x| + 0.5, or + a draw, would be rounded once more.
    part = magnitude.sub_(below)
    if rounding == "half_away":
        up = part >= 0.5
    elif rounding == "away_from_zero":
        up = part > 0
    elif rounding == "stochastic":
        if generator is None:
            raise InvalidSetting("stochastic rounding without a generator", "pass a torch.Generator")
        up = torch.rand(x.shape, generator=generator, dtype=x.dtype, device=x.device) < part
    else:
        raise InvalidSetting(
            f"rounding is {rounding!r}",
            "rounding is nearest_even, half_away, stochastic or away_from_zero",
        )
    return below.add_(up).copysign_(x)


def _wide(x: Tensor) -> Tensor:
    if not x.is_floating_point():
        raise InvalidSetting(f"a tensor of {x.dtype}", "only floating tensors are rounded")
    return x.contiguous() if x.dtype in _IEEE else x.float()


@cache
def _values(form: FloatFormat, dtype: torch.dtype, device: torch.device) -> Tensor:
    positive = [form.magnitude(code) for code in range(2 ** (form.bits - 1))]
    return torch.tensor(positive + [-value for value in positive], dtype=dtype, device=device)


E4M3FN = FloatFormat("e4m3fn", 4, 3, reserved=1)
"""OCP 8-bit float without infinity: largest 448, smallest 2^-9. The scales of NVFP4."""

E5M2 = FloatFormat("e5m2", 5, 2, reserved=4, infinite=True)
"""OCP 8-bit float of the wider range: largest 57344, smallest 2^-16."""

E3M2 = FloatFormat("e3m2", 3, 2)
"""OCP 6-bit float: largest 28."""

E2M3 = FloatFormat("e2m3", 2, 3)
"""OCP 6-bit float: largest 7.5."""

E2M2 = FloatFormat("e2m2", 2, 2)
"""The 5-bit float in which both element formats of MixFP4 are exact: largest 7."""

E2M1 = FloatFormat("e2m1", 2, 1)
"""OCP 4-bit float: 0, 0.5, 1, 1.5, 2, 3, 4, 6."""

E1M2 = FloatFormat("e1m2", 1, 2, bias=0)
"""4-bit float on a uniform grid: 0, 0.5, ..., 3.5."""

INT4 = integer(4)
"""-7 to 7, with sign and magnitude: twice E1M2, with the same codes."""

INT8 = integer(8)
"""-127 to 127, with sign and magnitude."""

_NAMED = {form.name: form for form in (E4M3FN, E5M2, E3M2, E2M3, E2M2, E2M1, E1M2, INT4, INT8)}


def named(name: str) -> FloatFormat:
    """A format by its name: e4m3fn, e5m2, e3m2, e2m3, e2m2, e2m1, e1m2, int4, int8.

    Raises:
        InvalidSetting: If there is none of that name.
    """
    if name not in _NAMED:
        raise InvalidSetting(f"there is no format {name!r}", f"formats are {', '.join(_NAMED)}")
    return _NAMED[name]
