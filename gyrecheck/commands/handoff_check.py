"""What `handoff show` and `handoff check` do: read once, profile and judge, and put it into a report."""

from __future__ import annotations

import shlex
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from gyrecheck.handoff.open import Records, open_records
from gyrecheck.handoff.profile import Profile
from gyrecheck.handoff.run_settings import run_settings
from gyrecheck.handoff.schema_text import schema_text
from gyrecheck.model.errors import GyreError
from gyrecheck.model.finding import Finding, Report, Severity, State, Table
from gyrecheck.rulebook.codes import load_codes, select_codes
from gyrecheck.rulebook.contract import Contract, RoleMap, load_contract
from gyrecheck.rulebook.project_config import load_project_config
from gyrecheck.rulebook.ratio_limits import load_ratio_limits
from gyrecheck.verdict.records.judge import Judge, Judgement

if TYPE_CHECKING:
    from gyrecheck.rulebook.codes import Sample
from gyrecheck.commands.handoff_tables import contract_table, field_table
from gyrecheck.commands.one_episode import Episode

READER_NAMES = {
    "jsonl": "JSON lines", "json_file": "JSON", "csv_file": "CSV", "npz": "numpy", "safetensors_file": "safetensors", "arrow": "Arrow",
    "torch_file": "torch", "hdf5": "HDF5",
}  # fmt: skip


def show_report(
    files: Sequence[Path],
    fields: Mapping[str, str],
    *,
    schema: Path | None = None,
    config: Path | None = None,
    episode: str = "",
    verbose: int = 0,
) -> tuple[Report, str]:
    """The table of keys and a schema inferred from it.

    Raises:
        GyreError: a file cannot be read, an option names what does not exist, or there is no such episode.
    """
    contract = load_contract(schema, load_project_config(config, Path.cwd()).rules_folder)
    records = open_records(files, contract)
    profile = Profile()
    found = Episode(episode)
    for batch in records:
        profile.feed(batch)
        if episode and not found.complete:
            found.feed(batch, contract.assign(profile.keys, _present(fields, profile.keys)))
    _refuse_empty(profile.rows, files)
    absent = contract.absent(profile.keys, fields)
    roles = contract.assign(profile.keys, _present(fields, profile.keys))
    seen = profile.seen(roles)
    tables: dict[str, Table] = {}
    if episode:
        tables["episode"] = found.table()
    tables["fields"] = field_table(seen)
    report = Report(
        command="handoff show",
        inputs=tuple(str(path) for path in files),
        tables=tables,
        heading=(_heading(records, profile.rows, roles),),
        not_judged=absent,
        skipped=tuple(records.notes),
        summary=f"{len(seen)} keys in {profile.rows:,} rows of {_files(records)}",
        statistics={"rows": profile.rows, "keys": len(seen), "files": len(records.files)},
        next="gyrecheck handoff check " + " ".join(shlex.quote(str(path)) for path in files),
    )
    del verbose
    return report, schema_text(Path(files[0]).stem, seen)


def check_report(
    files: Sequence[Path],
    fields: Mapping[str, str],
    *,
    schema: Path | None = None,
    config: Path | None = None,
    select: tuple[str, ...] = (),
    ignore: tuple[str, ...] = (),
    verbose: int = 0,
) -> tuple[Report, str]:
    """The judgement of all questions, and a schema inferred from the files.

    Raises:
        GyreError: a file cannot be read or has no known field, or an option names what does not exist.
    """
    settings = load_project_config(config, Path.cwd())
    codes = load_codes(settings.rules_folder)
    chosen = select_codes(codes, select or settings.select, ignore or settings.ignore)
    contract = load_contract(schema, settings.rules_folder)
    records = open_records(files, contract)
    judge, profile = run(records, contract, fields, rules=settings.rules_folder, settings=run_settings(files, contract))
    _refuse_empty(profile.rows, files)
    judged = judge.result()
    if not judged.roles.roles and not judged.roles.parts and not contract.schema_roles:
        keys = ", ".join(profile.keys[:12]) + (", ..." if len(profile.keys) > 12 else "")
        raise GyreError(
            f"{files[0]}: no known field among its keys ({keys})", hint="--field ROLE=KEY says what a key is, e.g. reward=score"
        )
    seen = profile.seen(judged.roles)
    findings = tuple(f for f in judged.findings if f.code in chosen)
    tables = {"contract": contract_table(contract, seen, findings)}
    if judged.table is not None:
        tables["ratio"] = judged.table
    verdicts = (
        (judged.verdict,)
        if judged.verdict is not None and judged.verdict.state is not State.BROKEN and judged.verdict.code in chosen
        else ()
    )
    del verbose
    report = Report(
        command="handoff check",
        inputs=tuple(str(path) for path in files),
        findings=findings,
        verdicts=verdicts,
        tables=tables,
        heading=(_heading(records, profile.rows, judged.roles),),
        not_judged=judged.not_judged,
        skipped=tuple(records.notes),
        summary=_summary(findings, judged, records),
        statistics={"records": judged.records, "rows": judged.rows, "files": len(records.files), "fields": len(seen)},
        next=_next(findings, files),
    )
    return report, schema_text(Path(files[0]).stem, seen)


def run(
    records: Records,
    contract: Contract,
    fields: Mapping[str, str],
    *,
    rules: Path | None = None,
    settings: frozenset[str] = frozenset(),
) -> tuple[Judge, Profile]:
    """One pass over the records: judged and profiled."""
    judge = Judge(contract, load_codes(rules), load_ratio_limits(), fields, settings)
    profile = Profile()
    for batch in records:
        judge.feed(batch)
        profile.feed(batch)
    return judge, profile


def _present(fields: Mapping[str, str], keys: Sequence[str]) -> dict[str, str]:
    return {role: key for role, key in fields.items() if key in keys}


def _heading(records: Records, rows: int, roles: RoleMap) -> str:
    kinds = ", ".join(dict.fromkeys(READER_NAMES.get(name, name) for name in records.readers))
    known = f", names as in {roles.framework}" if roles.framework else ""
    return f"{_files(records)} ({kinds}), {rows:,} rows{known}"


def _files(records: Records) -> str:
    return str(records.files[0]) if len(records.files) == 1 else f"{len(records.files)} files"


def _summary(findings: Sequence[Finding], judged: Judgement, records: Records) -> str:
    counts = {level: sum(f.severity is level for f in findings) for level in (Severity.ERROR, Severity.WARNING, Severity.NOTE)}
    checked = f"{judged.records:,} records of {_files(records)} ({len(judged.judged)} questions judged, {len(judged.not_judged)} not)"
    if not findings:
        return f"No findings in {checked}"
    words = ", ".join(f"{n} {level.value}{'s' if n != 1 else ''}" for level, n in counts.items() if n)
    return f"{words} in {checked}"


def _next(findings: Sequence[Finding], files: Sequence[Path]) -> str:
    grave = next((f for f in findings if f.severity is not Severity.NOTE), None)
    return f"gyrecheck explain {grave.code}" if grave else f"gyrecheck handoff diff {shlex.quote(str(files[0]))} TRAINER"


def _refuse_empty(rows: int, files: Sequence[Path]) -> None:
    if not rows:
        raise GyreError(f"{files[0]}: holds no record", hint="nothing checked is no pass; was the sampler stopped before its first write?")


def prove(sample: Sample) -> tuple[tuple[str, int], ...]:
    """Codes and records that `check` finds in a rule sample; `args` may be `--schema`, and the schema's text."""
    with tempfile.TemporaryDirectory(prefix="gyrecheck-sample-") as folder:
        path = Path(folder) / (sample.file or "sample.jsonl")
        path.write_text(sample.text.lstrip("\n"), encoding="utf-8")
        schema = None
        if sample.args[:1] == ("--schema",):
            schema = Path(folder) / "schema.toml"
            schema.write_text(sample.args[1], encoding="utf-8")
        report, _ = check_report([path], {}, schema=schema)
    found: list[tuple[str, int]] = []
    for finding in report.findings:
        lines = _records(finding.records) or [finding.line]
        found += [(finding.code, line) for line in lines]
    return tuple(found)


def _records(text: str) -> list[int]:
    numbers: list[int] = []
    for part in text.replace("…", "").split(","):
        first, _, last = part.strip().partition("-")
        if first.isdigit():
            numbers += list(range(int(first), int(last or first) + 1))
    return numbers
