"""What the `handoff` commands are asked in the same words, and what options and configuration say together: read in one place."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gyrecheck.commands.options import FailOn, fail_level
from gyrecheck.model.errors import GyreError
from gyrecheck.model.finding import Severity, Topology

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gyrecheck.rulebook.codes import Code
    from gyrecheck.rulebook.contract import Contract

_PANEL = "Handoff"
Files = Annotated[
    list[Path], typer.Argument(help="Trajectory files, or folders with the segments of a run.", metavar="FILE...", show_default=False)
]
Field = Annotated[
    list[str] | None, typer.Option("--field", metavar="ROLE=KEY", help="Which key plays a role, e.g. logprob=lp.", rich_help_panel=_PANEL)
]
Schema = Annotated[Path | None, typer.Option("--schema", help="The project's own contract (TOML).", rich_help_panel=_PANEL)]
WriteSchema = Annotated[
    Path | None, typer.Option("--write-schema", help="Write a contract inferred from these files.", rich_help_panel=_PANEL)
]


@dataclass(frozen=True, slots=True)
class Asked:
    """Options over configuration."""

    fields: Mapping[str, str] = field(default_factory=dict)
    """Role to key."""
    schema: Path | None = None
    rules: Path | None = None
    topology: Topology | None = None
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    fail_on: Severity = Severity.WARNING

    def contract(self) -> Contract:
        """The field contract.

        Raises:
            GyreError: the schema cannot be read.
        """
        from gyrecheck.rulebook.contract import load_contract

        return load_contract(self.schema, self.rules)

    def codes(self) -> tuple[Mapping[str, Code], Mapping[str, Severity]]:
        """All codes, and the severity of each in this topology; OFF for those that are not selected.

        Raises:
            GyreError: an unknown code is selected or ignored.
        """
        from gyrecheck.rulebook.codes import load_codes, select_codes

        codes = load_codes(self.rules)
        chosen = select_codes(codes, self.select, self.ignore)
        return codes, {code: rule.severity_in(self.topology) if code in chosen else Severity.OFF for code, rule in codes.items()}


def asked(
    *,
    field: list[str] | None,
    schema: Path | None,
    config: Path | None,
    topology: Topology | None = None,
    select: list[str] | None = None,
    ignore: list[str] | None = None,
    fail_on: FailOn | None = None,
) -> Asked:
    """What the options say; the project's configuration where they say nothing.

    Raises:
        GyreError: an option or the configuration is malformed.
    """
    from gyrecheck.rulebook.project_config import load_project_config

    project = load_project_config(config, Path.cwd())
    return Asked(
        fields=field_options(field),
        schema=schema,
        rules=project.rules_folder,
        topology=topology or project.topology,
        select=tuple(select or project.select),
        ignore=tuple(ignore or project.ignore),
        fail_on=fail_level(fail_on, project.fail_on),
    )


def field_options(given: list[str] | None) -> dict[str, str]:
    """`--field ROLE=KEY` entries as role to key.

    Raises:
        GyreError: an entry is not of that form.
    """
    found: dict[str, str] = {}
    for entry in given or []:
        role, equals, key = entry.partition("=")
        if not equals or not role or not key:
            raise GyreError(f"--field {entry}: expected ROLE=KEY, such as logprob=lp")
        found[role] = key
    return found


def never_an_input(target: Path, option: str, *inputs: Path) -> Path:
    """The target of a file that is written beside the report.

    Raises:
        GyreError: it is one of the inputs, or a trajectory file of an input folder: not even `--force` may lose what was read.
    """
    from gyrecheck.handoff.open import trajectory_name

    place = target.resolve()
    for given in inputs:
        read = given.resolve()
        if place == read or (given.is_dir() and place.is_relative_to(read) and place.is_file() and trajectory_name(place)):
            raise GyreError(f"{option} {target}: is read by this command, and is not overwritten", hint="give another path")
    return target
