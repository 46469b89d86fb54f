"""What every plugin keeps, whatever it offers: names, imports and words that users and the registry rely on."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import cached_property
from typing import Any, get_type_hints

import attrs

from separata import config as configs
from separata.discovery import Installed
from separata.errors import PluginError
from separata.loading import Plugin
from separata.registry import load_object

from .checks import CheckFailed, NotOffered, need, suite

LONGEST_SUMMARY = 80


@attrs.frozen
class PluginSubject:
    """A plugin on trial, with its distribution's claim to the slug."""

    plugin: Plugin
    installed: Installed

    @property
    def package(self) -> str:
        """The name of its package."""
        return self.installed.module.partition(".")[0]

    @cached_property
    def imports(self) -> dict[str, list[str]]:
        """What a process of its own finds that the plugin imports; see ``probe``."""
        command = [sys.executable, "-m", "separata.testing.probe", self.installed.module, self.installed.dist]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            lines = done.stderr.strip().splitlines()
            raise CheckFailed(lines[-1] if lines else "it fails to import in a process of its own")
        answer: dict[str, list[str]] = json.loads(done.stdout.splitlines()[-1])
        return answer


def slug_and_distribution_agree(subject: PluginSubject) -> None:
    """The distribution is ``separata-<slug>``, the package ``separata_<slug>``."""
    slug = subject.plugin.slug
    dist = subject.installed.dist
    need(dist == f"separata-{slug}", f"the distribution of {slug} is {dist}, not separata-{slug}")
    package = f"separata_{slug.replace('-', '_')}"
    need(subject.package == package, f"the package of {slug} is {subject.package}, not {package}")


def hook_module_is_light(subject: PluginSubject) -> None:
    """The hook module imports separata and the standard library, nothing else."""
    found = subject.imports["hooks"]
    need(not found, f"{subject.installed.module} imports {', '.join(found)}")


def package_is_light(subject: PluginSubject) -> None:
    """Importing the package imports none of its modules, and nothing heavy."""
    found = subject.imports["package"]
    need(not found, f"import {subject.package} imports {', '.join(found)}")


def imports_are_declared(subject: PluginSubject) -> None:
    """Every module imports when only what the distribution declares can be imported."""
    faults = subject.imports["undeclared"]
    need(not faults, "; ".join(faults))


def names_resolve(subject: PluginSubject) -> None:
    """Every import path that the plugin names leads to something."""
    plugin = subject.plugin
    paths = [
        path
        for offer in plugin.offers
        for path in (offer.object, offer.config, offer.reference, offer.example)
        if path
    ]
    paths += [command.object for command in plugin.commands] + [claim.proof for claim in plugin.claims]
    paths += [benchmark.run for benchmark in plugin.benchmarks]
    faults = []
    for path in dict.fromkeys(paths):
        try:
            load_object(path, plugin.slug)
        except PluginError as error:
            faults.append(error.problem)
    need(not faults, "; ".join(faults))


def summaries_are_one_sentence(subject: PluginSubject) -> None:
    """Each summary, the distribution's too, is one sentence of at most 80 characters."""
    plugin = subject.plugin
    summaries = {f"{offer.kind} {offer.name}": offer.summary for offer in plugin.offers}
    summaries |= {f"the command {command.object}": command.summary for command in plugin.commands}
    summaries["the distribution"] = subject.installed.summary
    for what, summary in summaries.items():
        need(len(summary) <= LONGEST_SUMMARY, f"the summary of {what} has {len(summary)} characters")
        need(summary.endswith(".") and "\n" not in summary, f"the summary of {what} is {summary!r}")
        need(". " not in summary, f"the summary of {what} is more than one sentence")


def offers_have_examples(subject: PluginSubject) -> None:
    """Each offer names an example that the kit can try it on."""
    bare = [offer.name for offer in subject.plugin.offers if not offer.example]
    need(not bare, f"{', '.join(bare)} names no example")


def configs_round_trip(subject: PluginSubject) -> None:
    """Each config is frozen, explains its settings, and survives being written down and read again."""
    paths = [offer.config for offer in subject.plugin.offers if offer.config]
    if not paths:
        raise NotOffered("no offer has a config")
    for path in dict.fromkeys(paths):
        cls: Any = load_object(path, subject.plugin.slug)
        need(attrs.has(cls), f"{path} is not an attrs class")
        need(cls.__attrs_props__.is_frozen, f"{path} is not frozen")
        silent = [field.name for field in attrs.fields(cls) if not field.metadata.get("help")]
        need(
            not silent, f"{path} does not explain {', '.join(silent)}: give each field metadata={{'help': …}}"
        )
        get_type_hints(cls)
        first = cls()
        plain = json.loads(json.dumps(configs.dump(first)))
        again = configs.resolve(cls, overrides={k: v for k, v in plain.items() if v is not None}).value
        need(first == again, f"{path} comes back as {again}")


def verbs_show_an_example(subject: PluginSubject) -> None:
    """There is one command, a typer app, and the help of each verb shows an example of its use."""
    if not subject.plugin.commands:
        raise NotOffered("the plugin has no command")
    need(len(subject.plugin.commands) == 1, "a plugin has one word, so one command")
    app = load_object(subject.plugin.commands[0].object, subject.plugin.slug)
    verbs = getattr(app, "registered_commands", None)
    if verbs is None:
        raise CheckFailed(f"{subject.plugin.commands[0].object} is not a typer app")
    usage = f"separata {subject.plugin.slug}"
    bare = [
        verb.callback.__name__ for verb in verbs if usage not in (verb.help or verb.callback.__doc__ or "")
    ]
    need(not bare, f"the help of {', '.join(bare)} shows no example that begins with `{usage}`")


CHECKS = suite(
    slug_and_distribution_agree,
    hook_module_is_light,
    package_is_light,
    imports_are_declared,
    names_resolve,
    summaries_are_one_sentence,
    offers_have_examples,
    configs_round_trip,
    verbs_show_an_example,
)
