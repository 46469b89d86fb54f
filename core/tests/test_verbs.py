"""Verbs: options from a config, output for people and for machines, progress."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal

import attrs
import pytest
import typer
from typer.testing import CliRunner

from separata import verbs
from separata.errors import InvalidConfig
from separata.testing import Site


@attrs.frozen
class Optimiser:
    step_size: float = attrs.field(default=0.1, metadata={"help": "Length of a step."})
    nesterov: bool = attrs.field(default=False, metadata={"help": "Look ahead."})


@attrs.frozen
class Config:
    rank: int = attrs.field(default=8, validator=attrs.validators.ge(1), metadata={"help": "In [1, 64]."})
    ratio: float = attrs.field(default=0.5, metadata={"help": "Share kept, in [nats]."})
    causal: bool = attrs.field(default=True, metadata={"help": "Look back only."})
    mode: Literal["fast", "exact"] = attrs.field(default="fast", metadata={"help": "How."})
    layers: tuple[int, ...] = attrs.field(factory=lambda: (1, 2), metadata={"help": "Which."})
    limit: int | None = attrs.field(default=None, metadata={"help": "At most."})
    out_file: Path = attrs.field(default=Path("out"), metadata={"help": "Where to."})
    optimiser: Optimiser = attrs.field(factory=lambda: Optimiser(0.3), metadata={"help": "Not shown."})


# The name of the package that the config stands in, which for a plugin is separata_<slug>.
PREFIX = __name__.partition(".")[0].upper()


@pytest.fixture
def verb() -> Callable[..., Any]:
    """Run a verb with arguments, and give the resolved config that it received."""
    app = verbs.app("Toys.")
    received: list[verbs.Resolved[Config]] = []

    @app.command()
    @verbs.configured(Config)
    def bounce(
        ball: Annotated[str, typer.Argument(help="Which one.")] = "red",
        *,
        config: verbs.Resolved[Config],
        json: verbs.Json = False,
        seed: verbs.Seed = 0,
    ) -> None:
        """Let a ball bounce.

        Example: separata toy bounce red --rank 4
        """
        received.append(config)
        verbs.show({"ball": ball, "seed": seed}, json=json)

    def run(*arguments: str, code: int = 0) -> Any:
        done = CliRunner().invoke(app, ["bounce", *arguments], catch_exceptions=False)
        assert done.exit_code == code, done.output
        run.output = done.output  # type: ignore[attr-defined]
        return received[-1] if received else None

    return run


def test_without_options_the_verb_gets_the_defaults(verb: Callable[..., Any]) -> None:
    assert verb().value == Config()


@pytest.mark.parametrize(
    ("arguments", "name", "value"),
    [
        (["--rank", "3"], "rank", 3),
        (["--ratio", "2"], "ratio", 2.0),
        (["--no-causal"], "causal", False),
        (["--causal"], "causal", True),
        (["--mode", "exact"], "mode", "exact"),
        (["--layers", "4, 5"], "layers", (4, 5)),
        (["--layers", ""], "layers", ()),
        (["--limit", "0"], "limit", 0),
        (["--out-file", "a/b"], "out_file", Path("a/b")),
        (["--optimiser.step-size", "1"], "optimiser", Optimiser(1.0)),
        (["--optimiser.nesterov"], "optimiser", Optimiser(0.3, nesterov=True)),
        (["--optimiser.step-size", "1", "--no-optimiser.nesterov"], "optimiser", Optimiser(1.0)),
    ],
)
def test_each_setting_is_an_option_of_its_type(
    arguments: list[str], name: str, value: object, verb: Callable[..., Any]
) -> None:
    assert getattr(verb(*arguments).value, name) == value


def test_what_is_not_given_stays_with_its_default(verb: Callable[..., Any]) -> None:
    found = verb("--rank", "3").provenance
    assert (found["rank"], found["ratio"]) == ("--rank", "default")


def test_the_command_line_wins_over_the_environment_over_the_file(
    verb: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "settings.toml"
    file.write_text('rank = 2\nratio = 0.25\nmode = "exact"\n')
    monkeypatch.setenv(f"{PREFIX}_RANK", "3")
    monkeypatch.setenv(f"{PREFIX}_RATIO", "0.75")
    found = verb("--config", str(file), "--rank", "4")
    assert (found.value.rank, found.value.ratio, found.value.mode) == (4, 0.75, "exact")
    assert [found.provenance[name] for name in ("rank", "ratio", "mode", "limit")] == [
        "--rank",
        f"${PREFIX}_RATIO",
        str(file),
        "default",
    ]


def test_a_switch_that_is_not_given_leaves_the_file_its_say(verb: Callable[..., Any], tmp_path: Path) -> None:
    file = tmp_path / "settings.toml"
    file.write_text("causal = false\n")
    assert verb("--config", str(file)).value.causal is False


def test_a_value_that_the_config_refuses_reaches_the_caller(verb: Callable[..., Any]) -> None:
    with pytest.raises(InvalidConfig, match="rank from --rank"):
        verb("--rank", "0")


@pytest.mark.parametrize(
    "arguments", [["--rank", "x"], ["--rank", "3.7"], ["--mode", "slow"], ["--rnk", "3"]]
)
def test_what_the_command_line_can_not_read_is_wrong_use(
    arguments: list[str], verb: Callable[..., Any]
) -> None:
    assert verb(*arguments, code=2) is None


def test_the_verbs_own_parameters_stay(verb: Callable[..., Any]) -> None:
    verb("blue", "--seed", "3", "--json")
    assert json.loads(verb.output) == {"ball": "blue", "seed": 3}  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "shown",
    [
        "Let a ball bounce.",
        "Example: separata toy bounce red --rank 4",
        "In [1, 64]. [default: 8]",
        "Share kept, in [nats]. [default: 0.5]",
        "Which. [default: 1,2]",
        "--causal / --no-causal",
        "--optimiser.step-size",
        "Length of a step. [default: 0.3]",
        "At most.\n",
        "--config",
    ],
)
def test_help_explains_each_setting_with_its_default(shown: str, verb: Callable[..., Any]) -> None:
    verb("--help")
    assert shown in verb.output.replace("\n                                ", " ")  # type: ignore[attr-defined]


FUTURE = "from __future__ import annotations\n"
CLI = """
from typing import Annotated
import typer
from separata import verbs
from .config import Config

app = verbs.app("Toys.")

@app.command()
@verbs.configured(Config)
def bounce(
    balls: Annotated[list[str] | None, typer.Argument(help="Which ones.")] = None,
    *,
    config: verbs.Resolved[Config],
    json: verbs.Json = False,
) -> None:
    '''Let balls bounce.'''
    verbs.show({"balls": balls, "rank": config.value.rank}, json=json)
"""


@pytest.mark.parametrize("header", ["", FUTURE], ids=["annotations", "annotations as text"])
def test_annotations_may_be_text_or_not(header: str, site: Site) -> None:
    config = header + "import attrs\n\n@attrs.frozen\nclass Config:\n    rank: int = 8\n"
    site.add("toy", files={"cli.py": header + CLI, "config.py": config})
    from separata_toy.cli import app  # type: ignore[import-not-found]

    done = CliRunner().invoke(app, ["bounce", "red", "--rank", "3", "--json"], catch_exceptions=False)
    assert json.loads(done.output) == {"balls": ["red"], "rank": 3}


def test_an_app_with_one_verb_shows_it_as_a_verb() -> None:
    app = verbs.app("Toys.")
    app.command("bounce")(lambda: None)
    assert "bounce" in CliRunner().invoke(app, ["--help"]).output


def test_an_app_leaves_errors_to_the_command_line() -> None:
    app = verbs.app("Toys.")

    @app.command()
    def fail() -> None:
        raise InvalidConfig("problem", "remedy")

    done = CliRunner().invoke(app, ["fail"])
    assert isinstance(done.exception, InvalidConfig)
    assert done.output == ""


@pytest.fixture
def shown(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    def show(rows: Any, **options: Any) -> str:
        verbs.show(rows, **options)
        captured = capsys.readouterr()
        assert captured.err == ""
        return captured.out

    return show


def test_a_table_has_a_column_a_key_and_a_line_a_row(shown: Callable[..., str]) -> None:
    table = shown([{"plugin": "xkv", "speed_up": 2.0}, {"plugin": "eco", "speed_up": 1.23456}], title="Times")
    lines = [line.split() for line in table.splitlines() if line.strip(" ─")]
    assert lines == [["Times"], ["plugin", "speed", "up"], ["xkv", "2"], ["eco", "1.235"]]


def test_a_single_mapping_is_shown_as_names_and_values(shown: Callable[..., str]) -> None:
    lines = [line.split() for line in shown({"slug": "toy", "holds": True}).splitlines() if line.strip()]
    assert lines == [["slug", "toy"], ["holds", "yes"]]


@pytest.mark.parametrize(
    ("value", "cell"), [(None, "–"), (True, "yes"), (False, "no"), (3, "3"), (0.1 + 0.2, "0.3")]
)
def test_cells_are_written_for_people(value: object, cell: str, shown: Callable[..., str]) -> None:
    assert shown([{"a": value}]).split()[-1] == cell


@pytest.mark.parametrize("text", ["[bold]", "[/x] closes nothing", "list[int]", ":smile:", "a\\[b", "[1, 2]"])
def test_a_cell_is_shown_as_it_is_whatever_brackets_it_has(text: str, shown: Callable[..., str]) -> None:
    assert text in shown([{"a": text}], title=text)


def test_a_table_that_is_piped_is_not_cut_to_eighty_columns(shown: Callable[..., str]) -> None:
    sentence = "word " * 30
    assert sentence.strip() in shown([{"a": sentence, "b": 0.5}])


def test_json_is_for_machines(shown: Callable[..., str]) -> None:
    assert json.loads(shown([{"a": 1.5, "b": None, "c": [True]}], json=True)) == [
        {"a": 1.5, "b": None, "c": [True]}
    ]


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_json_has_no_word_for_what_is_no_number(value: float, shown: Callable[..., str]) -> None:
    text = shown([{"a": value, "b": {"c": [value, 1.0]}}], json=True)
    assert json.loads(text, parse_constant=pytest.fail) == [{"a": None, "b": {"c": [None, 1.0]}}]


def test_json_takes_what_tensors_and_paths_hold(shown: Callable[..., str]) -> None:
    numpy = pytest.importorskip("numpy")
    row = {"a": numpy.float32(0.5), "b": numpy.array([1.0, math.nan]), "c": Path("x")}
    assert json.loads(shown(row, json=True)) == {"a": 0.5, "b": [1.0, None], "c": "x"}


@pytest.mark.parametrize("rows", [[], {}])
def test_nothing_is_nothing_to_machines(rows: Any, shown: Callable[..., str]) -> None:
    assert json.loads(shown(rows, json=True)) == rows


def test_progress_is_silent_where_nobody_watches(capsys: pytest.CaptureFixture[str]) -> None:
    assert list(verbs.progress(range(3), "counting")) == [0, 1, 2]
    assert capsys.readouterr() == ("", "")


def test_progress_is_drawn_on_standard_error_for_a_watcher(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert list(verbs.progress(iter(range(3)), "counting", total=3)) == [0, 1, 2]
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "counting" in captured.err


def test_the_module_says_what_it_does_not_have() -> None:
    with pytest.raises(AttributeError, match="no attribute resolved"):
        _ = verbs.resolved  # type: ignore[attr-defined]
