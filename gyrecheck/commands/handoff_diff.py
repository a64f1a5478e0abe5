"""`gyrecheck handoff diff A B`: the sampler's files against a batch of the trainer, or against the trainer's source."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gyrecheck.commands.handoff_options import Asked, Field, Schema, asked, never_an_input
from gyrecheck.commands.options import (
    Color,
    ColorWhen,
    Config,
    ExitZero,
    FailOnOption,
    Force,
    Ignore,
    Output,
    OutputFormat,
    Quiet,
    Select,
    TopologyOption,
    Undecided,
    UndecidedAs,
    finish,
    write_file,
)
from gyrecheck.model.errors import GyreError
from gyrecheck.model.finding import Report, Severity

if TYPE_CHECKING:
    from gyrecheck.model.field_sides import DataSide, SidePair

SIDE_SUFFIXES = (".py", ".ipynb")


def diff(
    sampler: Annotated[Path, typer.Argument(help="The sampler's trajectory file or folder.")],
    trainer: Annotated[Path, typer.Argument(help="A batch dumped by the trainer, or the trainer's source (.py file or package folder).")],
    write_map: Annotated[
        Path | None,
        typer.Option("--write-map", help="Write a FIELD_MAP function to this file; it raises on a missing key and never fills."),
    ] = None,
    field: Field = None,
    schema: Schema = None,
    topology: TopologyOption = None,
    select: Select = None,
    ignore: Ignore = None,
    config: Config = None,
    output_format: OutputFormat = None,
    output: Output = None,
    force: Force = False,
    color: Color = ColorWhen.AUTO,
    quiet: Quiet = False,
    fail_on: FailOnOption = None,
    exit_zero: ExitZero = False,
    undecided: Undecided = UndecidedAs.FAIL,
) -> None:
    """Compare the fields that the sampler writes with those that the trainer reads."""
    wanted = asked(field=field, schema=schema, config=config, topology=topology, select=select, ignore=ignore, fail_on=fail_on)
    report, pairs, sides = compare(sampler, trainer, wanted)
    if write_map is not None:
        from gyrecheck.report.field_map import field_map_source

        write_file(never_an_input(write_map, "--write-map", sampler, trainer), field_map_source(pairs, *sides), force=force)
    finish(
        report,
        output_format=output_format,
        output=output,
        color=color,
        quiet=quiet,
        fail_on=wanted.fail_on,
        exit_zero=exit_zero,
        undecided=undecided,
        force=force,
    )


def compare(
    sampler: Path,
    trainer: Path,
    wanted: Asked | None = None,
) -> tuple[Report, tuple[SidePair, ...], tuple[DataSide, DataSide]]:
    """The comparison as a report, with its pairs and the two sides.

    Raises:
        GyreError: a side cannot be read, or has no field at all.
    """
    from dataclasses import replace

    from gyrecheck.handoff.sides import side_of_files, side_of_source
    from gyrecheck.verdict.field_pairs import pair_fields
    from gyrecheck.verdict.layout import tell_layout
    from gyrecheck.verdict.pair_findings import PairFindings, pair_summary, pair_table

    wanted = wanted or Asked()
    contract = wanted.contract()
    codes, severity = wanted.codes()
    mine = side_of_files([sampler], contract, wanted.fields)
    theirs = side_of_source(trainer, contract) if is_source(trainer) else side_of_files([trainer], contract)
    for side, word in ((mine, "sampler's"), (theirs, "trainer's")):
        if not side.fields:
            what = "no key that is read of a batch was found" if side.source else "holds no record"
            hint = "give the file with __getitem__, collate_fn or train_step" if side.source else ""
            raise GyreError(f"{side.path}: {what} (the {word} side)", hint=hint)
    mine = replace(mine, layout=tell_layout(mine.fields, mine.arrays, contract))
    if not theirs.source:
        theirs = replace(theirs, layout=tell_layout(theirs.fields, theirs.arrays, contract))
    pairs = pair_fields(mine, theirs, contract)
    findings = PairFindings(mine, theirs, codes, severity).of(pairs)
    report = Report(
        command="handoff diff",
        inputs=(str(sampler), str(trainer)),
        topology=wanted.topology.value if wanted.topology else "",
        findings=findings,
        tables={"fields": pair_table(pairs)},
        heading=(f"sampler {describe(mine)}       trainer {describe(theirs)}",),
        sentences=tuple(text for side, name in ((mine, "sampler"), (theirs, "trainer")) for text in layout_words(side, name)),
        summary=pair_summary(pairs),
        not_judged=undecided_layout(mine, theirs),
        skipped=(*mine.notes, *theirs.notes),
        next="" if any(f.severity is Severity.ERROR for f in findings) else f"gyrecheck handoff check {sampler}",
    )
    return report, pairs, (mine, theirs)


def is_source(path: Path) -> bool:
    """A Python file, or a folder that holds Python files and no trajectory file."""
    from gyrecheck.handoff.open import trajectory_name

    if path.is_dir():
        return any(path.rglob("*.py")) and not any(trajectory_name(file) for file in path.iterdir() if file.is_file())
    return path.suffix in SIDE_SUFFIXES


def describe(side: DataSide) -> str:
    """`256 trajectories, 128 steps each`, `batch of 32, layout [B, T, D]`, `source, 12 keys`."""
    layout = side.layout
    if side.source:
        order = f", layout [{', '.join(layout.order)}, ...]" if layout.order in {"BT", "TB"} else ""
        return f"source, {len(side.fields)} keys{order}"
    if layout.order == "N":
        return f"{side.records} rows of one step"
    if layout.order in {"BT", "TB"}:
        steps = f", {layout.time} steps each" if layout.time > 0 else ", of differing length"
        return f"{layout.batch} trajectories{steps}, layout [{', '.join(layout.order)}, ...]"
    return f"{side.records} records"


def layout_words(side: DataSide, name: str) -> tuple[str, ...]:
    """What B and T are, and what told it."""
    if side.layout.order not in {"BT", "TB"}:
        return ()
    batch, time = side.layout.batch, side.layout.time
    sizes = f"B = {batch} trajectories, T = {time if time > 0 else 'their'} steps" if batch else "B = trajectories, T = steps"
    return (f"{name}'s layout is [{', '.join(side.layout.order)}, ...], {sizes}, told by: {'; '.join(side.layout.reasons)}",)


def undecided_layout(*sides: DataSide) -> tuple[str, ...]:
    """Which side's axis order the data do not tell, and why."""
    found = []
    for side in sides:
        if side.source or side.layout.order or not any(len(field.shape or ()) >= 2 for field in side.fields):
            continue
        both = bool(side.layout.reasons and side.layout.against)
        why = f"{'; '.join(side.layout.reasons)}, but {'; '.join(side.layout.against)}" if both else "no field tells time from batch"
        found.append(f"{side.path}: which axis is time, since {why} (a `step` or `episode_id` field would tell)")
    return tuple(found)
