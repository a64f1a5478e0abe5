"""What is `x` in `x.step()`: over 270 labelled calls in the proportions of public code, at most 2 % may be wrong."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

from gyrecheck.model.facts import Module
from gyrecheck.model.finding import Confidence
from gyrecheck.program.program import Program
from gyrecheck.rulebook.lexicon import load_lexicon
from gyrecheck.rulebook.lint_words import load_lint_words
from gyrecheck.rulebook.regions import load_regions
from gyrecheck.source.read import read_source

FOLDER = Path(__file__).parents[2] / "fixtures" / "projects" / "receivers"
METHODS = ("step", "reset", "sample", "update")
LABEL = re.compile(r"# -> (\S+)\s*$")


def labels() -> dict[tuple[str, int], frozenset[str]]:
    """(file, line) -> the roles that are right there; `-` is no role."""
    found = {}
    for path in sorted(FOLDER.glob("*.py")):
        for line, text in enumerate(path.read_text().splitlines(), 1):
            if match := LABEL.search(text):
                found[path.name, line] = frozenset(match.group(1).split("|"))
    return found


def answers() -> dict[tuple[str, int], tuple[str, str]]:
    """(file, line) -> (method, role that is surely known or `-`) of the outermost labelled call of each line."""
    modules = tuple(read_source(path.read_bytes(), path.name) for path in sorted(FOLDER.glob("*.py")))
    assert all(isinstance(module, Module) for module in modules)
    program = Program(tuple(m for m in modules if isinstance(m, Module)), load_lexicon(), load_regions(), load_lint_words())
    first: dict[tuple[str, int], tuple[int, str, str]] = {}
    for fn in program.functions:
        roles = {r.call: r.role for r in program.calls.roles[fn.number] if r.confidence is not Confidence.HINT}
        for at, call in enumerate(fn.fact.calls):
            method = call.name.rpartition(".")[2]
            key = (program.path(fn.number), call.line)
            if method in METHODS and call.result != -2 and (key not in first or (call.column, -call.end_column) < first[key][:1]):
                first[key] = (call.column, method, roles.get(at, "-"))
    return {key: (method, role) for key, (_, method, role) in first.items()}


LABELS, ANSWERS = labels(), answers()


def test_every_label_has_its_call() -> None:
    """No label stands on a line without such a call."""
    assert not set(LABELS) - set(ANSWERS)


def test_the_fixture_is_large_and_in_proportion() -> None:
    """At least 200 calls; the shares of each method follow the public count within ten points."""
    shares = Counter((ANSWERS[key][0], next(iter(sorted(LABELS[key])))) for key in LABELS)
    total = Counter(ANSWERS[key][0] for key in LABELS)
    assert sum(total.values()) >= 200
    for method, role, share in (
        ("step", "env.step", 0.48),
        ("step", "optimizer.step", 0.31),
        ("reset", "env.reset", 0.66),
        ("sample", "space.sample", 0.46),
        ("sample", "buffer.take", 0.33),
        ("update", "-", 0.93),
    ):
        assert abs(shares[method, role] / total[method] - share) <= 0.10, (method, role, shares[method, role] / total[method])


def test_at_most_two_percent_are_wrong() -> None:
    """Right, or unknown where a role is expected; a sure answer that is not the label is wrong."""
    wrong, unknown = [], []
    for key, right in LABELS.items():
        method, role = ANSWERS[key]
        if role in right:
            continue
        (unknown if role == "-" else wrong).append(f"{key[0]}:{key[1]} .{method} is {role}, labelled {'|'.join(sorted(right))}")
    assert len(wrong) <= 0.02 * len(LABELS), "\n".join(wrong)
    assert len(unknown) <= 0.10 * len(LABELS), "\n".join(unknown)
