"""Where the rule files are: inside the installed package, or beside it in a checkout; a project's own folder is read after ours."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Literal, get_args

from gyrecheck.model.errors import RuleError, did_you_mean

Kind = Literal["codes", "vocabulary", "logs", "fields", "config_keys", "ladders"]
KINDS: tuple[Kind, ...] = get_args(Kind)


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


def stray_files(folder: Path) -> tuple[str, ...]:
    """A sentence for each `*.toml` in a project's rules folder that no kind of rule reads, with the nearest folder's name.

    Raises:
        RuleError: `folder` is no folder.
    """
    read = {path for kind in KINDS for path in rule_files(kind, folder)}
    said = []
    for path in sorted(folder.rglob("*.toml")):
        if path not in read:
            parts = path.relative_to(folder).parts
            near = did_you_mean(parts[0], KINDS) if len(parts) > 1 and parts[0] not in KINDS else ""
            known = near or f"rule files stand in {', '.join(KINDS[:-1])} or {KINDS[-1]}, and in no folder below"
            said.append(f"{path}: is read by nothing: {known}")
    return tuple(said)


def rule_file(name: str) -> Path:
    """One single file at the top of the rules folder, e.g. `roles.toml`."""
    return rules_root() / name
