"""Where the rule files are: inside the installed package, or beside it in a checkout; a project's own folder is read after ours."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Literal

from gyrecheck.model.errors import RuleError

Kind = Literal["codes", "vocabulary", "logs", "fields", "config_keys", "ladders"]


@cache
def rules_root() -> Path:
    """The folder of the rules that come with gyrecheck.

    Raises:
        RuleError: the installation lacks it.
    """
    package = Path(__file__).resolve().parents[1]
    for candidate in (package / "rules", package.parent / "rules"):
        if (candidate / "roles.toml").is_file() or (candidate / "codes").is_dir():
            return candidate
    raise RuleError(f"{package}: the installation has no rules folder", hint="install gyrecheck again")


def rule_files(kind: Kind, extra: Path | None = None) -> tuple[Path, ...]:
    """All `*.toml` of one kind, ours first, then those of the project's folder `extra`, each in name order.

    Raises:
        RuleError: `extra` is given and is no folder.
    """
    files = sorted((rules_root() / kind).glob("*.toml"))
    if extra is not None:
        if not extra.is_dir():
            raise RuleError(f"{extra}: is no rules folder", hint="set `rules` in [tool.gyrecheck] to a folder, or remove it")
        files += sorted((extra / kind).glob("*.toml"))
    return tuple(files)


def rule_file(name: str) -> Path:
    """One single file at the top of the rules folder, e.g. `roles.toml`."""
    return rules_root() / name
