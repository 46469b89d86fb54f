"""The scheduler does what its definition says."""

from separata_nile import AverageScheduler


def test_without_strength_it_repeats_what_it_saw() -> None:
    assert AverageScheduler(strength=0.0).step(3.0) == 3.0
