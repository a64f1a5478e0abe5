"""Rule files load strictly: every misfit of a file at once, with file and key, and the near name."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gyrecheck.model.errors import RuleError
from gyrecheck.model.roles import Side
from gyrecheck.rulebook.codes import load_codes
from gyrecheck.rulebook.lexicon import join
from gyrecheck.rulebook.regions import load_regions
from gyrecheck.rulebook.toml_table import build, load_table
from gyrecheck.rulebook.vocabulary import ROLES, RoleEntry, RoleFile, VocabularyFile


class Colour(str, Enum):
    """Two values."""

    RED = "red"
    BLUE = "blue"


@dataclass(frozen=True)
class Part:
    """A nested table."""

    size: int
    shade: Colour = Colour.RED


@dataclass(frozen=True)
class Whole:
    """One field of each kind that a schema may have."""

    title: str
    share: float = 0.0
    on: bool = False
    kind: Literal["a", "b"] = "a"
    parts: tuple[Part, ...] = ()
    by_name: dict[str, tuple[str, ...]] | None = None


def test_a_file_that_fits_becomes_the_value(tmp_path: Path) -> None:
    """Nested tables, arrays, enums, and an integer where a number is wanted."""
    path = tmp_path / "w.toml"
    path.write_text('title = "t"\nshare = 1\nkind = "b"\nby_name = {x = ["y"]}\n[[parts]]\nsize = 3\nshade = "blue"\n')
    assert load_table(path, Whole) == Whole("t", 1.0, False, "b", (Part(3, Colour.BLUE),), {"x": ("y",)})


def test_every_misfit_of_a_file_is_reported_at_once(tmp_path: Path) -> None:
    """Six faults in one file are six clauses of one error, each with its key, the file first."""
    path = tmp_path / "w.toml"
    path.write_text('titel = "t"\nshare = "much"\non = 1\nkind = "c"\n[[parts]]\nsize = true\nshade = "rad"\n')
    with pytest.raises(RuleError) as caught:
        load_table(path, Whole)
    message = caught.value.message
    assert message.startswith(f"{path}: ")
    for clause in (
        "`titel` is no known key, did you mean `title`?",
        "`share` is 'much', expected a number",
        "`on` is 1, expected true or false",
        "`kind` is 'c', expected one of a, b",
        "`parts[1].size` is True, expected an integer",
        "`parts[1].shade` is 'rad', expected one of red, blue, did you mean `red`?",
        "`title` is missing",
    ):
        assert clause in message, clause


def test_a_file_that_is_no_toml_names_the_line(tmp_path: Path) -> None:
    """The parser's own line number is passed on."""
    path = tmp_path / "w.toml"
    path.write_text('title = "t"\nshare = = 2\n')
    with pytest.raises(RuleError, match="line 2"):
        load_table(path, Whole)


def test_a_file_that_cannot_be_read_is_a_rule_error(tmp_path: Path) -> None:
    """A missing file and bytes that are no UTF-8 are errors of the rules, not of the program."""
    with pytest.raises(RuleError, match="cannot be read"):
        load_table(tmp_path / "none.toml", Whole)
    (tmp_path / "b.toml").write_bytes(b'title = "\xff"\n')
    with pytest.raises(RuleError, match="no valid TOML"):
        load_table(tmp_path / "b.toml", Whole)


SCALAR = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8)


@given(st.dictionaries(st.sampled_from(["title", "share", "on", "kind", "parts", "by_name", "x"]), SCALAR | st.lists(SCALAR, max_size=3)))
def test_any_table_loads_or_is_a_rule_error(table: dict[str, object]) -> None:
    """Whatever a table holds, the loader answers with a value or with RuleError."""
    message = "t: "
    try:
        build(table, Whole, where="t")
    except RuleError as error:
        message = error.message
    assert message.startswith("t: ")


def write_code(folder: Path, file: str, /, **changes: str) -> None:
    """A code file in `folder/codes` with some keys replaced."""
    keys = {
        "code": '"GYR299"',
        "name": '"own-rule"',
        "engines": '["lint"]',
        "severity": '"note"',
        "what": '"w"',
        "why": '"y"',
        "fix": '"f"',
    }
    (folder / "codes").mkdir(exist_ok=True)
    (folder / "codes" / file).write_text("".join(f"{k} = {v}\n" for k, v in (keys | changes).items()))


def test_a_project_adds_a_code(tmp_path: Path) -> None:
    """A file in the project's folder is one code more."""
    write_code(tmp_path, "GYR299-own-rule.toml")
    assert set(load_codes(tmp_path)) - set(load_codes()) == {"GYR299"}


@pytest.mark.parametrize(
    ("name", "changes", "words"),
    [
        ("GYR299-other.toml", {}, "expected the file name GYR299-own-rule.toml"),
        ("GYR2999-own-rule.toml", {"code": '"GYR2999"'}, "expected GYR and three digits"),
        ("GYR999-own-rule.toml", {"code": '"GYR999"'}, "unknown family"),
        ("GYR299-Own-Rule.toml", {"name": '"Own-Rule"'}, "expected lower case"),
        ("GYR203-own-rule.toml", {"code": '"GYR203"'}, "GYR203 is defined twice"),
        ("GYR299-own-rule.toml", {"severity": '"errror"'}, "did you mean `error`?"),
        ("GYR299-own-rule.toml", {"engines": '["lintt"]'}, "`engines[1]` is 'lintt'"),
    ],
)
def test_a_code_file_out_of_form_is_refused(tmp_path: Path, name: str, changes: dict[str, str], words: str) -> None:
    """Number, name, file name, severity and engine are checked; redefining needs `replaces`."""
    write_code(tmp_path, name, **changes)
    with pytest.raises(RuleError) as caught:
        load_codes(tmp_path)
    assert words in caught.value.message
    assert name in caught.value.message


def test_a_code_may_be_replaced_on_purpose(tmp_path: Path) -> None:
    """With `replaces = true` the project's file wins."""
    write_code(tmp_path, "GYR203-own-rule.toml", code='"GYR203"', replaces="true")
    assert load_codes(tmp_path)["GYR203"].name == "own-rule"


ALL_ROLES = RoleFile({name: RoleEntry(Side.NEUTRAL) for name in ROLES})


def test_two_files_may_not_contradict_each_other() -> None:
    """A symbol with two roles is an error that names both files and both roles."""
    files = {
        "a.toml": VocabularyFile("a", symbols={"x.y": "env.step"}),
        "b.toml": VocabularyFile("b", symbols={"x.y": "loss.backward"}),
    }
    with pytest.raises(RuleError, match=r"b\.toml: `x\.y` is loss\.backward, but a\.toml says env\.step"):
        join(ALL_ROLES, files)


def test_an_unknown_role_and_an_unknown_base_are_both_named() -> None:
    """Both faults of a vocabulary file stand in one error, the role with its near name."""
    table = {"framework": "f", "symbols": {"x.y": "env.stap"}, "types": {"x.T": {"kind": "env", "bases": ["x.Nowhere"]}}}
    with pytest.raises(RuleError) as caught:
        join(ALL_ROLES, {"f.toml": build(table, VocabularyFile, where="f.toml")})
    assert "`env.stap` is no role of roles.toml; did you mean `env.step`?" in caught.value.message
    assert "`x.T` has the base `x.Nowhere`" in caught.value.message


def test_an_unknown_kind_is_named(tmp_path: Path) -> None:
    """A receiver or type of a kind that no rule asks for is refused with the near kind."""
    with pytest.raises(RuleError, match="kind `optimiser` is not known; did you mean `optimizer`"):
        build({"framework": "f", "receivers": [{"names": ["x"], "kind": "optimiser"}]}, VocabularyFile, where="f.toml")


def test_regions_must_be_whole(tmp_path: Path) -> None:
    """A regions file that lacks one of the regions the rules ask for, or has a stranger, is refused."""
    path = tmp_path / "regions.toml"
    path.write_text('[regions.loss]\nfunctions = ["loss"]\n')
    with pytest.raises(RuleError, match="has no region update"):
        load_regions(path)
    path.write_text('[regions.lose]\nfunctions = ["loss"]\n')
    with pytest.raises(RuleError, match="region `lose` is asked for by no rule"):
        load_regions(path)
