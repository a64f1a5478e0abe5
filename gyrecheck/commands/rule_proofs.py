"""Loading every rule file and running the samples it holds through the engines they name; all failures, each with its file."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from gyrecheck.model.errors import GyreError
from gyrecheck.rulebook.codes import Code, Engine, Sample
from gyrecheck.rulebook.locate_rules import rule_files
from gyrecheck.rulebook.toml_table import load_table

Prove = Callable[[Sample], tuple[tuple[str, int], ...]]
COMMAND_OF: dict[Engine, str] = {
    "lint": "lint", "locate": "locate", "hook": "run", "ledger": "ledger", "handoff": "handoff", "probe": "probe",
}  # fmt: skip
"""The command module whose `prove` runs an engine's samples."""
LOADERS = (
    "gyrecheck.rulebook.codes:load_codes",
    "gyrecheck.rulebook.lexicon:load_lexicon",
    "gyrecheck.rulebook.regions:load_regions",
    "gyrecheck.rulebook.log_formats:load_formats",
    "gyrecheck.rulebook.contract:load_contract",
    "gyrecheck.rulebook.ratio_limits:load_ratio_limits",
    "gyrecheck.rulebook.source_words:load_source_words",
    "gyrecheck.rulebook.lint_words:load_lint_words",
    "gyrecheck.rulebook.fix_forms:load_fix_forms",
    "gyrecheck.rulebook.hook_table:load_hook_table",
    "gyrecheck.rulebook.thresholds:load_thresholds",
    "gyrecheck.rulebook.aliases:load_aliases",
    "gyrecheck.rulebook.config_keys:load_config_keys",
    "gyrecheck.rulebook.ladder:load_ladders",
)
"""Every kind of rule file has one loader; a kind whose engine is not installed has none and is passed over."""


@dataclass(frozen=True, slots=True)
class Proof:
    """One sample of one file, numbered as in the file."""

    path: Path
    code: Code
    number: int
    sample: Sample

    @property
    def label(self) -> str:
        """`GYR203-reward-model-in-loss.toml sample 2 (lint, silent)`."""
        return f"{self.path.name} sample {self.number} ({self.sample.engine}, {self.sample.expect})"


def proofs(files: tuple[Path, ...] | None = None) -> Iterator[Proof]:
    """Every sample of `files`, all of ours when None.

    Raises:
        RuleError: a file does not load.
    """
    for path in rule_files("codes") if files is None else files:
        code = load_table(path, Code)
        for number, sample in enumerate(code.samples, 1):
            yield Proof(path, code, number, sample)


def prover(engine: Engine) -> Prove | None:
    """The function that runs an engine's samples, or None where the engine has none."""
    name = f"gyrecheck.commands.{COMMAND_OF[engine]}"
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        return None
    return cast("Prove | None", getattr(module, "prove", None))


def failure(proof: Proof, extra: Path | None = None) -> str:
    """Why the sample does not prove its rule, as the end of a sentence; the empty string when it does."""
    run = prover(proof.sample.engine)
    if run is None:
        return f"names the engine {proof.sample.engine}, which proves no samples"
    try:
        if extra is not None and "extra" in inspect.signature(run).parameters:
            found = cast("Callable[..., tuple[tuple[str, int], ...]]", run)(proof.sample, extra=extra)
        else:
            found = run(proof.sample)
    except GyreError as error:
        return f"cannot be run: {error.message}"
    lines = sorted(line for code, line in found if code == proof.code.code)
    shown = ", ".join(map(str, lines))
    if proof.sample.expect == "silent":
        return f"is silent, but raises {proof.code.code} at line {shown}" if lines else ""
    if not lines:
        others = ", ".join(sorted({f"{code} at line {line}" for code, line in found}))
        return f"raises no {proof.code.code}" + (f" (found instead: {others})" if others else "")
    if proof.sample.lines and not set(lines) & set(proof.sample.lines):
        wanted = " or ".join(map(str, proof.sample.lines))
        return f"raises {proof.code.code} at line {shown}, expected at line {wanted}"
    return ""


def load_all(extra: Path | None = None) -> list[GyreError]:
    """Load every kind of rule file; what does not load, one error a kind."""
    problems: list[GyreError] = []
    for place in LOADERS:
        module_name, _, function = place.partition(":")
        try:
            module = importlib.import_module(module_name)
        except ModuleNotFoundError as error:
            if error.name != module_name:
                raise
            continue
        load = getattr(module, function)
        try:
            load(**({"extra": extra} if "extra" in inspect.signature(load).parameters else {}))
        except GyreError as error:
            problems.append(error)
    return problems


def format_problems(extra: Path | None = None) -> tuple[int, list[str]]:
    """How many log formats there are, and what their own sample lines say against them, each with its file."""
    from gyrecheck.rulebook.log_formats import load_formats
    from gyrecheck.stream.logs import format_failures

    formats = load_formats(extra)
    return len(formats), [f"rules/logs/{name}.toml: {wrong}" for name, form in formats.items() for wrong in format_failures(form, formats)]


def incomplete(code: Code) -> str:
    """What a rule's samples lack to prove it, or the empty string."""
    have = {sample.expect for sample in code.samples}
    missing = [expect for expect in ("found", "silent") if expect not in have]
    strangers = sorted({s.engine for s in code.samples} - set(code.engines))
    if missing:
        return f"has no {' and no '.join(missing)} sample"
    return f"has samples for {', '.join(strangers)}, which `engines` does not name" if strangers else ""
