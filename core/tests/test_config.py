"""Settings: four sources in order, strict types, and where each came from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

import attrs
import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from separata.config import dump, fingerprint, read, resolve, settings
from separata.errors import InvalidConfig, SeparataError

in_ = attrs.validators.in_


@attrs.frozen
class Optimiser:
    """A config within a config."""

    step_size: float = attrs.field(default=0.1, validator=attrs.validators.gt(0), metadata={"help": "Step."})
    nesterov: bool = False


@attrs.frozen
class Config:
    """One field of each type that a plugin's config may have."""

    rank: int = attrs.field(default=8, validator=attrs.validators.ge(1), metadata={"help": "How many."})
    ratio: float = 0.5
    causal: bool = True
    name: str = "plain"
    mode: Literal["fast", "exact"] = "fast"
    layers: tuple[int, ...] = ()
    span: tuple[float, float] = (0.0, 1.0)
    limit: int | None = None
    folder: Path = Path("out")
    optimiser: Optimiser = attrs.field(factory=lambda: Optimiser(step_size=0.3))


configs = st.builds(
    Config,
    rank=st.integers(1, 10**6),
    ratio=st.floats(allow_nan=False),
    causal=st.booleans(),
    name=st.text(),
    mode=st.sampled_from(["fast", "exact"]),
    layers=st.lists(st.integers()).map(tuple),
    span=st.tuples(st.floats(allow_nan=False), st.floats(allow_nan=False)),
    limit=st.none() | st.integers(),
    folder=st.sampled_from([Path("a"), Path("b/c")]),
    optimiser=st.builds(Optimiser, step_size=st.floats(0.01, 10), nesterov=st.booleans()),
)


def written(folder: Path, text: str, name: str = "settings.toml") -> Path:
    path = folder / name
    path.write_text(text, "utf-8")
    return path


def refused(**sources: Any) -> InvalidConfig:
    with pytest.raises(InvalidConfig) as caught:
        resolve(Config, **sources)
    assert len(str(caught.value).splitlines()) == 2
    return caught.value


def test_without_sources_every_setting_is_its_default() -> None:
    found = resolve(Config)
    assert found.value == Config()
    assert set(found.provenance.values()) == {"default"}


def test_provenance_names_every_setting_with_its_dots() -> None:
    assert list(resolve(Config).provenance)[-2:] == ["optimiser.step_size", "optimiser.nesterov"]


@pytest.mark.parametrize(
    ("sources", "rank", "origin"),
    [
        ("default", 8, "default"),
        ("file", 2, "settings.toml"),
        ("file env", 3, "$TOY_RANK"),
        ("file env override", 4, "--rank"),
        ("env override", 4, "--rank"),
        ("file override", 4, "--rank"),
    ],
)
def test_overrides_win_over_the_environment_over_the_file_over_the_default(
    sources: str, rank: int, origin: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOY_RANK", "3") if "env" in sources else None
    found = resolve(
        Config,
        file=written(tmp_path, "rank = 2") if "file" in sources else None,
        env="TOY_",
        overrides={"rank": 4} if "override" in sources else {"rank": None},
    )
    assert found.value.rank == rank
    assert found.provenance["rank"].endswith(origin)


def test_sources_fill_in_each_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOY_OPTIMISER__NESTEROV", "yes")
    file = written(tmp_path, "[optimiser]\nstep_size = 1.5")
    found = resolve(Config, file=file, env="TOY_", overrides={"mode": "exact"})
    assert found.value == Config(mode="exact", optimiser=Optimiser(1.5, nesterov=True))
    assert found.provenance["optimiser.step_size"] == str(file)
    assert found.provenance["optimiser.nesterov"] == "$TOY_OPTIMISER__NESTEROV"


def test_without_a_prefix_the_environment_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "3")
    assert resolve(Config).value.rank == 8


def test_the_default_of_a_nested_config_is_the_outer_ones() -> None:
    assert resolve(Config, overrides={"rank": 1}).value.optimiser.step_size == 0.3


def test_a_nested_setting_leaves_its_siblings_at_the_outer_default() -> None:
    nested = resolve(Config, overrides={"optimiser.nesterov": True}).value.optimiser
    assert nested == Optimiser(0.3, nesterov=True)


def test_nested_settings_may_be_given_as_a_table() -> None:
    assert resolve(Config, overrides={"optimiser": {"step_size": 2.0}}).value.optimiser.step_size == 2.0


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("rank", "12", 12),
        ("ratio", "1e-3", 1e-3),
        ("ratio", "2", 2.0),
        *[("causal", text, True) for text in ("1", "true", "True", "yes", "ON")],
        *[("causal", text, False) for text in ("0", "false", "FALSE", "no", "Off")],
        ("name", "any, text", "any, text"),
        ("mode", "exact", "exact"),
        ("layers", "1,2, 3", (1, 2, 3)),
        ("layers", "7", (7,)),
        ("layers", "", ()),
        ("span", "0.5, 2", (0.5, 2.0)),
        ("limit", "3", 3),
        ("folder", "a/b", Path("a/b")),
    ],
)
def test_text_of_the_environment_becomes_the_type_of_the_setting(
    name: str, text: str, value: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(f"TOY_{name.upper()}", text)
    found = getattr(resolve(Config, env="TOY_").value, name)
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("rank = 3.7", "a whole number"),
        ("rank = true", "a whole number"),
        ('rank = "3.7"', "a whole number"),
        ("rank = [3]", "a whole number"),
        ('ratio = "yes"', "a number"),
        ("ratio = true", "a number"),
        ("causal = 1", "true or false"),
        ('causal = "maybe"', "true or false"),
        ("name = 3", "a text"),
        ('mode = "slow"', "one of fast, exact"),
        ("layers = [1, 2.5]", "a whole number, several joined by commas"),
        ('layers = "1,x"', "a whole number, several joined by commas"),
        ("layers = 3", "a whole number, several joined by commas"),
        ("span = [1.0]", "2 values joined by commas: a number, a number"),
        ("span = [1.0, 2.0, 3.0]", "2 values joined by commas: a number, a number"),
        ('limit = "none"', "a whole number"),
        ("limit = 1.5", "a whole number"),
    ],
)
def test_a_value_of_another_type_is_refused_with_its_source(line: str, says: str, tmp_path: Path) -> None:
    file = written(tmp_path, line)
    error = refused(file=file)
    assert error.remedy == f"{line.partition(' ')[0]} is {says}"
    assert f"(from {file})" in error.problem


@pytest.mark.parametrize(
    ("sources", "where"),
    [({"overrides": {"rank": 0}}, "rank from --rank"), ({"env": "TOY_"}, "rank from $TOY_RANK")],
)
def test_a_value_that_its_validator_refuses_is_told_with_its_source(
    sources: dict[str, Any], where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOY_RANK", "-2")
    assert where in refused(**sources).problem


def test_a_refused_nested_value_is_told_with_its_dotted_name() -> None:
    assert (
        "optimiser.step_size from --optimiser.step-size"
        in refused(overrides={"optimiser.step_size": -1.0}).problem
    )


def test_a_setting_that_only_sounds_like_the_refused_one_is_not_blamed() -> None:
    @attrs.frozen
    class Short:
        n: int = 1
        ratio: float = attrs.field(default=0.5, validator=attrs.validators.le(1))

    with pytest.raises(InvalidConfig) as caught:
        resolve(Short, overrides={"n": 2, "ratio": 3.0})
    assert caught.value.problem.endswith("(ratio from --ratio)")


class TooFlat(SeparataError, ValueError):
    """A plugin's own refusal."""


def test_a_plugins_own_refusal_keeps_its_own_two_lines() -> None:
    @attrs.frozen
    class Flat:
        slope: float = attrs.field(default=1.0)

        @slope.validator
        def _steep(self, _: object, value: float) -> None:
            if value < 1:
                raise TooFlat(f"slope is {value}", "take a steeper one")

    with pytest.raises(TooFlat, match="take a steeper one"):
        resolve(Flat, overrides={"slope": 0.5})


def test_a_setting_without_default_that_nobody_gives_is_told() -> None:
    @attrs.frozen
    class Needs:
        rank: int

    with pytest.raises(InvalidConfig, match=r"the setting rank is not given\nrank is a whole number"):
        resolve(Needs)


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("rnak", "did you mean rank? "),
        ("optimiser.stepsize", "did you mean optimiser.step_size? "),
        ("xyz", ""),
    ],
)
def test_an_unknown_setting_is_answered_with_the_closest_and_all(name: str, hint: str) -> None:
    error = refused(overrides={name: 1})
    assert error.problem == f"there is no setting {name} (from --{name})"
    assert error.remedy.startswith(f"{hint}the settings are rank, ratio, ")


def test_an_unknown_setting_of_a_file_is_told_with_the_file(tmp_path: Path) -> None:
    file = written(tmp_path, "[optimiser]\nnesterof = true")
    assert refused(file=file).problem == f"there is no setting optimiser.nesterof (from {file})"


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("settings.toml", "rank = ", "is not valid"),
        ("settings.toml", "rank = 1\nrank = 2", "is not valid"),
        ("settings.json", "{", "is not valid"),
        ("settings.json", "[1]", "holds a list"),
    ],
)
def test_a_file_that_is_no_table_of_settings_is_refused(
    name: str, text: str, says: str, tmp_path: Path
) -> None:
    assert says in refused(file=written(tmp_path, text, name)).problem


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "settings.toml").write_bytes(b"rank = \xff")
    assert "is not valid" in refused(file=tmp_path / "settings.toml").problem


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    assert "can't be read" in refused(file=tmp_path / "none.toml").problem


def test_a_json_file_without_a_run_is_read_as_it_stands(tmp_path: Path) -> None:
    assert read(written(tmp_path, '{"rank": 3}', "settings.json")) == {"rank": 3}


@given(configs)
@hypothesis_settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_config_of_a_run_repeats_the_run(tmp_path: Path, config: Config) -> None:
    run = json.dumps({"format": 1, "slug": "toy", "config": dump(config), "versions": {}})
    found = resolve(Config, file=written(tmp_path, run, "config.json"))
    assert found.value == config


@given(configs)
def test_what_is_dumped_is_plain_json(config: Config) -> None:
    assert resolve(Config, overrides=json.loads(json.dumps(dump(config)))).value == config


@given(configs, configs)
def test_fingerprints_tell_configs_apart(one: Config, other: Config) -> None:
    # As they are written down: 0.0 and -0.0 are equal, and written down as two.
    assert (fingerprint(one) == fingerprint(other)) == (json.dumps(dump(one)) == json.dumps(dump(other)))


@given(st.dictionaries(st.text(), st.integers() | st.text() | st.lists(st.floats(allow_nan=False))))
def test_a_fingerprint_does_not_depend_on_the_order(table: dict[str, Any]) -> None:
    assert fingerprint(table) == fingerprint(dict(reversed(table.items())))


def test_a_fingerprint_of_a_set_does_not_depend_on_the_process() -> None:
    assert fingerprint({"tags": {"b", "a", "c"}}) == fingerprint({"tags": ["a", "b", "c"]})


def test_a_config_within_a_table_counts_with_its_settings() -> None:
    assert fingerprint({"with": Optimiser(0.2)}) == fingerprint({"with": dump(Optimiser(0.2))})


def test_settings_are_listed_with_type_default_and_help() -> None:
    found = {setting.name: setting for setting in settings(Config)}
    assert (found["rank"].kind, found["rank"].default, found["rank"].help) == (int, 8, "How many.")
    assert (found["optimiser.step_size"].default, found["optimiser.step_size"].help) == (0.3, "Step.")
