"""`gyrecheck handoff replay FILE...`: the importance ratio where the recorded version's weights compute the log-probs again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gyrecheck.commands.handoff_options import Asked, Field, Schema, asked
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
)
from gyrecheck.model.errors import GyreError
from gyrecheck.model.finding import Report, State

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gyrecheck.handoff.replay import Replayer
    from gyrecheck.verdict.replay_ratio import RatioJudgement
    from gyrecheck.verdict.replay_rows import ReplayRows


def replay(
    files: Annotated[list[Path], typer.Argument(help="Trajectory files or folders.")],
    policy: Annotated[
        str | None,
        typer.Option(
            "--policy",
            metavar="MODULE:FUNCTION",
            help="f(observations, actions[, weights]) -> log-probs; not needed where the file has both.",
        ),
    ] = None,
    weights: Annotated[Path | None, typer.Option("--weights", help="Folder of published weights, e.g. v000017.safetensors.")] = None,
    records: Annotated[int, typer.Option("--records", min=0, help="Replay at most this many rows; 0 = all.")] = 0,
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
    """Compute recorded log-probs again and judge the importance ratio by version, age and row pattern."""
    wanted = asked(field=field, schema=schema, config=config, topology=topology, select=select, ignore=ignore, fail_on=fail_on)
    report = replayed(files, wanted, policy=policy, weights=weights, records=records)
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


def replayed(
    files: Sequence[Path],
    wanted: Asked | None = None,
    *,
    policy: str | None = None,
    weights: Path | None = None,
    records: int = 0,
) -> Report:
    """The ratio's judgement as a report.

    Raises:
        GyreError: a file, the policy or its weights cannot be used, or no record carries what is needed.
    """
    from gyrecheck.handoff.open import open_records
    from gyrecheck.rulebook.ratio_limits import load_ratio_limits
    from gyrecheck.verdict.replay_columns import ReplayColumns
    from gyrecheck.verdict.replay_ratio import judge_ratio
    from gyrecheck.verdict.replay_report import ratio_findings, ratio_table, ratio_verdict

    if weights is not None and policy is None:
        raise GyreError("--weights needs --policy: weights alone compute no log-prob", hint="--policy MODULE:FUNCTION")
    wanted = wanted or Asked()
    contract, limits = wanted.contract(), load_ratio_limits()
    codes, severity = wanted.codes()
    source = open_records(list(files), contract)
    replayer = make_replayer(policy, weights) if policy is not None else None
    columns: ReplayColumns | None = None
    keys: tuple[str, ...] = ()
    rows_read = 0
    for batch in source:
        if columns is None:
            keys = tuple(batch.columns)
            roles = contract.assign(keys, wanted.fields)
            measure = "replay_logprob" if replayer is not None or roles.key("replay_logprob") else "proximal_logprob"
            columns = ReplayColumns(roles, limits, replay=measure, weights="recorded" if replayer is not None else None)
        if replayer is None:
            columns.feed(batch)
        else:
            values, done = replayer.replay(batch, columns.roles, limit=records - rows_read if records else 0)
            columns.feed(batch, values, done)
        rows_read += batch.rows
        if records and rows_read >= records:
            break
    rows = columns.rows() if columns is not None else None
    if columns is None or rows is None:
        raise GyreError(_nothing(replayer, files), hint=f"keys: {', '.join(keys[:20])}" if keys else "")
    judged = judge_ratio(rows, limits)
    if replayer is not None:
        judged = with_experiments(judged, rows, replayer)
    field = columns.roles.key("logprob")
    return Report(
        command="handoff replay",
        inputs=tuple(str(file) for file in files),
        topology=wanted.topology.value if wanted.topology else "",
        findings=ratio_findings(judged, codes, severity, columns=columns, field=field),
        verdicts=(ratio_verdict(judged, codes, severity, asked=True),),
        tables={"ratio": ratio_table(judged)},
        heading=(_heading(replayer, rows),),
        not_judged=_not_judged(columns, replayer),
        skipped=tuple(source.notes),
        summary=f"Importance ratio of {rows.size} {rows.unit}s: {judged.state.value}.",
        next="" if judged.state is State.HOLDS else "gyrecheck explain GYR402",
    )


def make_replayer(policy: str, weights: Path | None) -> Replayer:
    """The user's function and the folder of weights, both checked before anything is read."""
    from gyrecheck.handoff.replay import Replayer, load_policy
    from gyrecheck.handoff.weights_folder import weights_folder

    folder = weights_folder(weights) if weights is not None else None
    return Replayer(load_policy(policy, weights=folder is not None), policy, folder)


def with_experiments(judged: RatioJudgement, rows: ReplayRows, replayer: Replayer) -> RatioJudgement:
    """Add what only calling the policy again can tell: whether it is deterministic, and whether other versions' weights fit better."""
    from gyrecheck.verdict.replay_experiments import Fit, off_versions_of, with_fits, with_unsteady

    if replayer.unsteady > 1e-6:
        return with_unsteady(judged, rows, replayer.unsteady)
    found = {version: replayer.fits(version) for version in off_versions_of(judged)}
    return with_fits(judged, rows, {version: Fit(*fit) for version, fit in found.items() if fit is not None})


def _heading(replayer: Replayer | None, rows: ReplayRows) -> str:
    if replayer is None:
        how = {
            "recorded": "the recorded version's weights",
            "trainer": "the trainer's weights",
            "unknown": "weights the file does not name",
        }
        return f"both log-probs from the file, replayed with {how[rows.weights]}"
    versions = f", {len(replayer.folder.files)} versions of weights" if replayer.folder is not None else ""
    return f"replayed by {replayer.name}{versions}"


def _not_judged(columns: object, replayer: Replayer | None) -> tuple[str, ...]:
    from gyrecheck.verdict.replay_columns import ReplayColumns

    assert isinstance(columns, ReplayColumns)  # noqa: S101 - narrows the type, whose module imports numpy
    found = []
    if columns.unequal:
        found.append(f"{columns.unequal} records whose two log-probs differ in length")
    if columns.left:
        found.append(f"{columns.left} {columns.unit}s beyond the first {columns.keep}")
    if replayer is not None and replayer.absent and replayer.folder is not None:
        newest = max(replayer.folder.files)
        rows = sum(replayer.absent.values())
        versions = ", ".join(str(version) for version in sorted(replayer.absent)[:8])
        have = f"{min(replayer.folder.files)} to {newest}"
        ahead = "; a tag above the newest version names weights that were not published" if max(replayer.absent) > newest else ""
        found.append(f"{rows} rows of version {versions}: the folder holds versions {have}{ahead}")
    return tuple(found)


def _nothing(replayer: Replayer | None, files: Sequence[Path]) -> str:
    names = ", ".join(str(file) for file in files[:3])
    if replayer is None:
        return f"{names}: no record carries both a recorded and a replayed log-prob; give --policy to compute the second"
    if replayer.absent and replayer.folder is not None:
        have = f"{min(replayer.folder.files)} to {max(replayer.folder.files)}"
        return f"{names}: no weights for versions {sorted(replayer.absent)[:8]}; {replayer.folder.path} holds versions {have}"
    return f"{names}: no record carries a log-prob to compare with"
