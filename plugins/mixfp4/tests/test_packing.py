"""Nibbles."""

import pytest
import torch

from separata_mixfp4.errors import BadCodes
from separata_mixfp4.formats import E2M1, INT4
from separata_mixfp4.packing import decode_nibbles, pack_nibbles, unpack_nibbles


def test_the_even_index_is_in_the_low_half():
    assert pack_nibbles(torch.tensor([0x1, 0xA, 0xF, 0x0], dtype=torch.uint8)).tolist() == [0xA1, 0x0F]


def test_every_byte_comes_back():
    every = torch.arange(256, dtype=torch.uint8).view(4, 64)
    assert torch.equal(pack_nibbles(unpack_nibbles(every)), every)


@pytest.mark.parametrize("form", [E2M1, INT4], ids=["e2m1", "int4"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_a_byte_is_looked_up_as_its_two_codes_are(form, dtype):
    every = torch.arange(256, dtype=torch.uint8).view(4, 64)
    assert torch.equal(decode_nibbles(every, form, dtype), form.decode(unpack_nibbles(every), dtype))


def test_nothing_packs_to_nothing():
    empty = torch.zeros(3, 0, dtype=torch.uint8)
    assert pack_nibbles(empty).shape == decode_nibbles(empty, E2M1).shape == (3, 0)


def test_an_odd_row_is_refused():
    with pytest.raises(BadCodes, match="3 codes"):
        pack_nibbles(torch.zeros(2, 3, dtype=torch.uint8))
