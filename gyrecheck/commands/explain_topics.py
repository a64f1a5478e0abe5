"""The topics of `gyrecheck explain`: exit codes, configuration keys, the vocabulary, the diagnosis ladder; each from its source."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from gyrecheck.model.errors import ExitCode
from gyrecheck.rulebook.locate_rules import rule_file, rule_files
from gyrecheck.rulebook.project_config import ProjectConfig
from gyrecheck.rulebook.symbol_lookup import load_vocabulary
from gyrecheck.rulebook.toml_table import load_table, read_toml
from gyrecheck.rulebook.vocabulary import RoleFile

EXITS = {
    ExitCode.OK: "checked; nothing at or above the fail level, every verdict holds",
    ExitCode.FOUND: "findings at or above the fail level, or a verdict is broken",
    ExitCode.COULD_NOT_CHECK: "could not check: usage, configuration, input, a rule file that does not load, or standard output closed or full",
    ExitCode.UNDECIDED: "undecided: the inputs were fine but too little or too strange to judge",
    ExitCode.INTERNAL: "a defect of gyrecheck itself",
    ExitCode.INTERRUPTED: "interrupted (Ctrl-C); ledger and watch print what is known by then, marked partial, where anything is",
}
KEYS = {
    "topology": ("decoupled, colocated or synchronous; inferred when absent", 'topology = "decoupled"'),
    "select": ("codes, prefixes or names to check; all when absent", 'select = ["GYR2", "GYR401"]'),
    "extend-select": ("codes added to those that are checked", 'extend-select = ["GYR604"]'),
    "ignore": ("codes, prefixes or names left out", 'ignore = ["GYR305"]'),
    "exclude": ("globs of files that are not read", 'exclude = ["third_party/**"]'),
    "per-path-ignores": ("codes left out under a glob", 'per-path-ignores = { "tests/**" = ["GYR1"] }'),
    "sides": ("which side a glob's files are on", 'sides = { "agent/learner.py" = "training" }'),
    "entrypoints": ("the files that start each side alone", 'entrypoints.sampler = ["sample.py"]'),
    "carrier": ("the module, folder or symbol through which records pass", 'carrier = "runs/ready"'),
    "max-age": ("the age limit that the trainer keeps", 'max-age = "3v"'),
    "rules": ("a folder of your own rule files, read after those of gyrecheck", 'rules = "gyrecheck-rules"'),
    "fail-on": ("the lowest severity that gives exit 1", 'fail-on = "error"'),
}


def exit_codes(extra: Path | None) -> str:
    """Every exit code of every command."""
    del extra
    lines = ["Exit codes, the same for every command", ""]
    lines += [f"{int(code):>4}  {EXITS[code]}" for code in ExitCode]
    lines += [
        "",
        "When several apply the gravest cause wins: 4, 2, 1, 3, 0.",
        "A reader that leaves early (| head) changes nothing: the code is the report's own; a stream cut before its end is 2.",
        "--fail-on LEVEL, --exit-zero and --undecided ok change what counts.",
    ]
    return "\n".join(lines) + "\n"


def config(extra: Path | None) -> str:
    """Every key of the configuration."""
    del extra
    known = [name.replace("_", "-") for name in ProjectConfig.__dataclass_fields__ if name != "root"]
    lines = ["[tool.gyrecheck] in pyproject.toml, or the same keys at the top of gyrecheck.toml", ""]
    lines += [f"  {key:<17} {KEYS[key][0]:<62} {KEYS[key][1]}".rstrip() for key in known]
    lines += ["", "An unknown key is an error that names the nearest known one. In code: # gyre: ignore[GYR203] why it is accepted"]
    return "\n".join(lines) + "\n"


def vocabulary(extra: Path | None) -> str:
    """Every role with its side, and where its symbols are written."""
    roles = load_table(rule_file("roles.toml"), RoleFile).roles
    files = load_vocabulary(extra).files
    lines = ["Roles: what a symbol can do, and the side that puts it on (* needs or changes gradients)", ""]
    for name, role in roles.items():
        star = "*" if role.gradient else " "
        lines.append(f"  {name:<21}{star} {role.side.value:<9} {role.summary}")
    lines += ["", f"{len(files)} files say which symbol has which role: {', '.join(file.framework for file in files.values())}."]
    lines += ["A symbol is known exactly (qualified name), bound (type or shape of the call) or by name only (never above a note)."]
    lines += ["gyrecheck vocab NAME says which file names a symbol; your own files go into the folder that `rules` names."]
    return "\n".join(lines) + "\n"


def ladder(extra: Path | None) -> str:
    """The order of the diagnosis when nothing trains, with each ladder file's rungs."""
    lines = [
        "The diagnosis ladder: when the counters do not move, the first rung without a signal is where to look", "",
        "Flow rungs say whether anything moves; the first that fails opens the cause rungs, in order.",
        "Later rungs of a failed flow are skipped, never passed: a live process is not a live link.",
    ]  # fmt: skip
    for path in rule_files("ladders", extra):
        table = read_toml(path)
        lines += ["", f"{path.stem}: {table.get('summary', '')}".rstrip(": ")]
        lines += [
            f"  {at}  {rung.get('kind', '')!s:<6} {rung.get('name', '')}  {rung.get('question', rung.get('summary', ''))}".rstrip()
            for at, rung in enumerate(_rungs(table), 1)
        ]
    return "\n".join(lines) + "\n"


def _rungs(table: dict[str, object]) -> list[dict[str, object]]:
    lists = [value for value in table.values() if isinstance(value, list) and value and isinstance(value[0], dict)]
    return [rung for rungs in lists for rung in rungs]


Topic = Callable[[Path | None], str]
TOPICS: dict[str, tuple[str, Topic]] = {
    "exit-codes": ("what each exit code means", exit_codes),
    "config": ("the keys of the configuration", config),
    "vocabulary": ("roles, sides, and where symbols are written", vocabulary),
    "ladder": ("the order of the diagnosis when nothing trains", ladder),
}
