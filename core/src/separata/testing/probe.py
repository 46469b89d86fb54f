"""What a plugin's modules import, and whether that is declared; only a process of its own can tell.

    python -m separata.testing.probe HOOK_MODULE DISTRIBUTION

Prints a JSON object: ``package`` and ``hooks``, the third-party modules that importing the package and its hook
module loads beyond the core's own, and ``undeclared``, the faults found when only what the distribution declares
can be imported.
"""

from __future__ import annotations

import json
import pkgutil
import re
import sys
from collections.abc import Iterable, Sequence
from importlib import import_module
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.metadata import PackageNotFoundError, packages_distributions, requires
from importlib.util import find_spec
from types import FrameType, ModuleType


def probe(hook_module: str, distribution: str) -> dict[str, list[str]]:
    """Import the package, then its hook module, then every module of it with the blocker in place."""
    import separata

    # What every hook module needs is loaded first, so that it is not counted as the plugin's.
    _ = (separata.hookimpl, separata.Offer)
    package = hook_module.partition(".")[0]
    return {
        "package": loads(package),
        "hooks": loads(hook_module),
        "undeclared": undeclared(package, distribution),
    }


def loads(module: str) -> list[str]:
    """Third-party top-level modules that importing a module adds to what is loaded."""
    before = _top_levels()
    import_module(module)
    return sorted(_top_levels() - before - sys.stdlib_module_names - {module.partition(".")[0]})


def undeclared(package: str, distribution: str) -> list[str]:
    """Faults of a package's modules when only what its distribution declares can be imported."""
    faults = []
    modules = sorted(_modules(package))
    # The command line brings typer, and is the only one that imports a plugin's cli module.
    for names, roots in (
        ([name for name in modules if name != f"{package}.cli"], [distribution]),
        ([name for name in modules if name == f"{package}.cli"], [distribution, "separata-cli"]),
    ):
        finder = OnlyDeclared(package, roots)
        sys.meta_path.insert(0, finder)
        for name in names:
            try:
                import_module(name)
            except ImportError as error:
                faults.append(f"{name}: {error}")
        sys.meta_path.remove(finder)
    return faults


class OnlyDeclared(MetaPathFinder):
    """Refuses a package every installed third-party module that the given distributions do not require.

    Only the package's own imports are judged: a library such as transformers looks for many optional ones.

    Args:
        package: The package on trial, which may import itself.
        roots: Distributions whose requirements, and theirs in turn, are allowed.
    """

    def __init__(self, package: str, roots: Iterable[str]) -> None:
        allowed = closure(roots)
        self._package = package
        self._refused = {
            module
            for module, dists in packages_distributions().items()
            if module not in sys.stdlib_module_names and not allowed & {_normal(dist) for dist in dists}
        }

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Refuse an undeclared module to the package; what others import at their own pleasure is theirs."""
        top = fullname.partition(".")[0]
        if top in self._refused and top != self._package and _importer() == self._package:
            raise ModuleNotFoundError(f"{top} is imported, and pyproject.toml does not declare it", name=top)
        return None


def closure(roots: Iterable[str]) -> set[str]:
    """The distributions, what they require, and what that requires, as far as it is installed.

    Args:
        roots: Names, each with or without extras, such as ``separata-x[test]``.
    """
    from packaging.requirements import Requirement

    found: set[str] = set()
    waiting = [(root.name, frozenset(root.extras)) for root in map(Requirement, roots)]
    while waiting:
        name, extras = waiting.pop()
        try:
            listed = requires(name) or ()
        except PackageNotFoundError:
            continue
        first_time = _normal(name) not in found
        found.add(_normal(name))
        if not first_time and not extras:
            continue
        for requirement in map(Requirement, listed):
            wanted = [{"extra": extra} for extra in extras] or [{"extra": ""}]
            if requirement.marker is None or any(requirement.marker.evaluate(one) for one in wanted):
                waiting.append((requirement.name, frozenset(requirement.extras)))
    return found


def _modules(package: str) -> Iterable[str]:
    spec = find_spec(package)
    if spec is None:
        return
    yield package
    for location in spec.submodule_search_locations or ():
        for found in pkgutil.walk_packages([location], prefix=f"{package}.", onerror=lambda _: None):
            if not found.name.endswith("__main__"):
                yield found.name


def _normal(dist: str) -> str:
    return re.sub(r"[-_.]+", "-", dist).lower()


def _importer() -> str:
    """The top-level name of the module whose import statement, or import_module call, is running."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        name = str(frame.f_globals.get("__name__", ""))
        if not name.startswith("importlib") and name not in (__name__, "lazy_loader"):
            return name.partition(".")[0]
        frame = frame.f_back
    return ""


def _top_levels() -> set[str]:
    return {name.partition(".")[0] for name in sys.modules}


if __name__ == "__main__":
    print(json.dumps(probe(*sys.argv[1:])))
