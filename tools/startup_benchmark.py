"""CPU time of start-up among many plugins, as a ratio to what a typer program can't do without.

python tools/startup_benchmark.py            57 plugins, 200 other distributions, best of five
python tools/startup_benchmark.py --json     the same for machines
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from separata.testing import Site

BASELINE = "python -c 'import typer'"
HOOKS = """
@hookimpl
def separata_offers():
    yield Offer("kernel", "ball", "separata_{slug}.things:Ball", summary="A ball.")
"""
MAIN = "from separata_cli.main import main; main()"
GET = "import sys, separata\nfor slug in sys.argv[1:]: separata.get('kernel', f'{slug}/ball')"
COMPLETION = {"_SEPARATA_COMPLETE": "complete_bash", "COMP_WORDS": "separata t", "COMP_CWORD": "1"}


def slugs(count: int) -> list[str]:
    """The slugs of the pretended plugins."""
    return [f"toy{number:02}" for number in range(count)]


def build(folder: Path, plugins: int, others: int) -> Site:
    """A site with plugins that offer one small thing, and with distributions that are none."""
    site = Site(folder)
    for slug in slugs(plugins):
        site.add(slug, HOOKS.format(slug=slug), files={"things.py": "class Ball: pass\n"})
    for number in range(others):
        site.add_metadata(f"other-{number:03}", requires=["numpy", "torch>=2"])
    return site


def cases(plugins: int) -> Iterator[tuple[str, list[str], Mapping[str, str]]]:
    """Name, arguments of Python and variables of each case; the first one is the measure of the others."""
    yield BASELINE, ["-c", "import typer"], {}
    yield "separata --help", ["-c", MAIN, "--help"], {}
    yield "separata list", ["-c", MAIN, "list"], {}
    yield "completion of the first word", ["-c", MAIN], COMPLETION
    yield "import separata", ["-c", "import separata"], {}
    for count in sorted({min(count, plugins) for count in (1, 10, plugins)}):
        yield f"get() of {count} of {plugins} plugins", ["-c", GET, *slugs(count)], {}


def cpu_seconds(arguments: Sequence[str], environment: Mapping[str, str]) -> float:
    """User and system time of one Python process from its start to its end."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, *arguments]
    subprocess.run(command, env=dict(environment), check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measure(plugins: int, others: int, rounds: int) -> list[dict[str, Any]]:
    """Time all cases in turns, so that each meets the same noise, and take the best of each."""
    with tempfile.TemporaryDirectory() as folder:
        site = build(Path(folder), plugins, others)
        wanted = list(cases(plugins))
        best = dict.fromkeys((name for name, _, _ in wanted), float("inf"))
        # The round that does not count writes the byte code.
        for turn in range(rounds + 1):
            for name, arguments, variables in wanted:
                seconds = cpu_seconds(arguments, site.environment(**variables))
                if turn:
                    best[name] = min(best[name], seconds)
    return [
        {"case": name, "cpu_s": round(seconds, 4), "ratio": round(seconds / best[BASELINE], 2)}
        for name, seconds in best.items()
    ]


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--plugins", type=int, default=57)
    parser.add_argument("--others", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    rows = measure(given.plugins, given.others, given.rounds)
    if given.json:
        print(json.dumps(rows, indent=1))
        return 0
    print(f"{'case':34}{'cpu s':>8}{'ratio':>8}")
    for row in rows:
        print(f"{row['case']:34}{row['cpu_s']:8.3f}{row['ratio']:8.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
