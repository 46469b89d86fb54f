"""The trainer finds what it should find."""

from pathlib import Path

from separata_nile.examples import trainer


def test_a_relation_without_noise_is_found(tmp_path: Path) -> None:
    example = trainer()
    assert example.loss(example.fit(tmp_path, 400, 4, False)) < 1e-6
