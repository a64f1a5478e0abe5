"""A project's own settings: `[tool.gyrecheck]` in pyproject.toml, or gyrecheck.toml; an unknown key is an error that names the nearest."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field, replace
from fnmatch import fnmatch
from pathlib import Path

from gyrecheck.model.errors import GyreError, did_you_mean
from gyrecheck.model.finding import Severity, Topology
from gyrecheck.model.roles import Side
from gyrecheck.rulebook.toml_table import build, read_toml


@dataclass(frozen=True, slots=True)
class Entrypoints:
    """The files that start each side alone."""

    sampler: tuple[str, ...] = ()
    trainer: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ProjectConfig:
    """What a project says of itself. Globs are POSIX and relative to `root`."""

    topology: Topology | None = None
    select: tuple[str, ...] = ()
    extend_select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    per_path_ignores: dict[str, tuple[str, ...]] = field(default_factory=dict)
    sides: dict[str, Side] = field(default_factory=dict)
    entrypoints: Entrypoints = Entrypoints()
    carrier: str = ""
    max_age: str | int = ""
    rules: str = ""
    fail_on: Severity | None = None
    root: str = ""
    """The folder of the file; set on loading, not a key."""

    @property
    def rules_folder(self) -> Path | None:
        """The project's own rules folder, or None."""
        return Path(self.root, self.rules) if self.rules else None


def fits(path: str, glob: str, root: str) -> bool:
    """Whether a file, as the report names it, or a folder above it fits `glob`, also when named from `root`."""
    names = [path]
    if root:
        with suppress(ValueError):  # a file outside the project has no name below it
            names.append(Path(path).resolve().relative_to(Path(root).resolve()).as_posix())
    return any(fnmatch(n, glob) or fnmatch(n, f"{glob.rstrip('/')}/*") for n in names)


def load_project_config(path: Path | None, start: Path) -> ProjectConfig:
    """The settings in `path`, else of the nearest file at or above `start`; defaults when there is none.

    Raises:
        GyreError: `path` does not exist, or a key or value does not fit.
    """
    if path is not None:
        if not path.is_file():
            raise GyreError(f"{path}: no such configuration file", hint="--config takes a pyproject.toml or gyrecheck.toml")
        return _load(path) or ProjectConfig(root=str(path.parent))
    folder = start.resolve()
    for parent in (folder, *folder.parents):
        for name in ("gyrecheck.toml", "pyproject.toml"):
            if (parent / name).is_file() and (found := _load(parent / name)) is not None:
                return found
        if (parent / ".git").exists():
            break
    return ProjectConfig()


def _load(path: Path) -> ProjectConfig | None:
    table = read_toml(path)
    where = str(path)
    if path.name != "gyrecheck.toml" and "gyrecheck" not in table.get("tool", {}):
        return None
    if path.name != "gyrecheck.toml":
        table, where = table["tool"]["gyrecheck"], f"{path}: [tool.gyrecheck]"
    known = [name.replace("_", "-") for name in ProjectConfig.__dataclass_fields__ if name != "root"]
    for key in table:
        if key.replace("_", "-") not in known:
            near = did_you_mean(key, known)
            raise GyreError(f"{where} has no key `{key}`", hint=(f"{near} " if near else "") + "known keys: gyrecheck explain config")
    return replace(build(table, ProjectConfig, where=where), root=str(path.parent))
