"""Ignore comments: what they hide, what they must not hide, and which of them are reported."""

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gyrecheck.model.finding import Finding, Severity
from gyrecheck.source.convict import convict
from gyrecheck.source.suppressions import read_suppressions

CODES = {
    "GYR001": "unparsable-source",
    "GYR002": "unused-suppression",
    "GYR201": "env-import-in-training",
    "GYR203": "reward-model-in-loss",
}
TODAY = date(2026, 11, 30)


def found(line, code="GYR203"):
    return Finding(code=code, name=CODES[code], severity=Severity.ERROR, message="m", path="a.py", line=line, column=1)


def run(text, *findings, judged=None, today=TODAY):
    source = text if isinstance(text, bytes) else text.encode()
    return convict("a.py", source, findings, today=today, codes=CODES, judged=judged or set(CODES))


def hidden(text, *lines, code="GYR203"):
    result = run(text, *(found(line, code) for line in lines))
    return [f.line for f in result if f.suppressed], [f.message for f in result if f.code == "GYR002"]


def test_a_comment_at_the_end_of_the_line_hides_with_its_reason():
    """The reason in the comment is the reason in the finding."""
    result = run("x = rm(a)  # gyre: ignore[GYR203] scored once, offline\n", found(1))
    assert [f.suppressed for f in result] == ["scored once, offline"]


def test_any_line_of_a_multi_line_call_carries_the_comment():
    """A comment on the third line of a call hides a finding on its first, and one on its second."""
    text = "x = rm(\n    a,\n    b,  # gyre: ignore[GYR203] why\n)\ny = rm(a)\n"
    assert hidden(text, 1, 2, 5) == ([1, 2], [])


def test_a_comment_on_its_own_line_belongs_to_the_statement_below():
    """It hides the next statement with all its lines, and not the one after."""
    text = "def f():\n    # gyre: ignore[GYR203] why\n    x = rm(\n        a)\n    y = rm(a)\n"
    assert hidden(text, 3, 4, 5) == ([3, 4], [])


@pytest.mark.parametrize("between", ["\n", "    # gyre: ignore[GYR203] why\n", "  \n"])
def test_a_comment_that_touches_no_statement_hides_nothing(between):
    """A blank line, or another indentation, parts the comment from the statement: it is reported as unused."""
    text = f"if a:\n    b()\n    # gyre: ignore[GYR203] why\n{between}x = rm(a)\n"
    lines, complaints = hidden(text, text.count("\n"))
    assert lines == []
    assert complaints
    assert all("hides nothing" in c for c in complaints)


@pytest.mark.parametrize("at", [1, 2, 3, 4, 5])
def test_decorators_and_signature_are_one_statement(at):
    """A comment on a decorator, between, or on the signature hides a finding on any of those lines, and none in the body."""
    lines = ["@ray.remote(", "    num_gpus=1)", "@torch.compile", "def act(self,", "        obs):", "    return rm(obs)"]
    lines[at - 1] += "  # gyre: ignore[GYR203] why"
    assert hidden("\n".join(lines) + "\n", 1, 3, 4, 5, 6) == ([1, 3, 4, 5], [])


def test_a_comment_between_decorator_and_function_counts():
    """A line of its own under the decorator belongs to the decorated function."""
    text = "@cache\n# gyre: ignore[GYR203] why\ndef f():\n    pass\n"
    assert hidden(text, 3) == ([3], [])


def test_a_comment_on_a_loop_header_does_not_hide_its_body():
    """The header of a compound statement is a statement of its own."""
    text = "for x in y:  # gyre: ignore[GYR203] why\n    rm(x)\n"
    assert hidden(text, 1, 2) == ([1], [])


def test_two_statements_on_one_line_share_the_comment():
    """`a(); rm(b)  # gyre: …` speaks for both."""
    assert hidden("a(); rm(b)  # gyre: ignore[GYR203] why\n", 1) == ([1], [])


def test_text_in_strings_is_no_comment():
    """A docstring that quotes the comment hides nothing and is not reported."""
    text = 's = """\n# gyre: ignore[GYR203] why\n"""; rm(a)\nt = "# gyre: ignore[GYR203] why"\n'
    assert hidden(text, 1, 3, 4) == ([], [])


def test_several_codes_and_names():
    """Codes and names may stand side by side; each that hides nothing is named."""
    text = "x = rm(a)  # gyre: ignore[reward-model-in-loss, GYR201] why\n"
    assert hidden(text, 1) == ([1], ["the ignore comment for GYR201 hides nothing here"])


@pytest.mark.parametrize(
    "comment",
    ["# gyre: ignore[GYR203]", "# gyre: ignore[GYR203]   ", "# gyre: ignore[GYR203] until=2030-01-01", "# gyre: ignore[GYR203]: -"],
)
def test_a_reason_is_required(comment):
    """Without a reason the finding stays, and the comment is reported."""
    assert hidden(f"x = rm(a)  {comment}\n", 1) == ([], ["the ignore comment for GYR203 gives no reason, so nothing is hidden"])


def test_the_date_is_enforced():
    """The comment holds through its last day and not a day longer."""
    text = "x = rm(a)  # gyre: ignore[GYR203] until the move, until=2026-11-30\n"
    assert [f.suppressed for f in run(text, found(1), today=date(2026, 11, 30))] == ["until the move"]
    late = run(text, found(1), today=date(2026, 12, 1))
    assert [(f.code, f.suppressed) for f in late] == [("GYR203", ""), ("GYR002", "")]
    assert "expired on 2026-11-30" in late[1].message


@pytest.mark.parametrize(
    ("comment", "word"),
    [
        ("# gyre: ignore why", "names no code"),
        ("# gyre: ignore[] why", "names no code"),
        ("# gyre: ignore[GYR203 why", "not closed"),
        ("# gyre: ignroe[GYR203] why", "is not understood"),
        ("# gyre: ignore[GYR2O3] why", "unknown rule code `GYR2O3`"),
        ("# gyre: ignore[GYR203] why until=soon", "is no date"),
    ],
)
def test_what_cannot_be_understood_is_reported(comment, word):
    """A slip in the comment is named, at the comment, and the finding stays."""
    result = run(f"x = rm(a)  {comment}\n", found(1))
    assert [f.code for f in result if not f.suppressed] == ["GYR203", "GYR002"]
    assert word in result[1].message
    assert (result[1].line, result[1].column) == (1, 12)


def test_other_words_after_gyre_are_left_alone():
    """A comment that merely begins with the word is nobody's slip."""
    assert hidden("x = 1  # gyre: the circular current\n") == ([], [])


def test_other_tools_may_share_the_comment():
    """A comment for another linter before or after does not leak into the reason."""
    result = run("x = rm(a)  # noqa: E501  # gyre: ignore[GYR203] why  # type: ignore\n", found(1))
    assert result[0].suppressed == "why"


def test_ignore_file_speaks_for_every_line_and_for_the_file():
    """The file-level form hides all findings of its code, also one without a line; a closer comment gives the reason first."""
    text = "# gyre: ignore-file[GYR203] legacy tree\nrm(a)\nrm(b)  # gyre: ignore[GYR203] near\n"
    result = run(text, found(0), found(2), found(3), found(2, "GYR201"))
    assert [f.suppressed for f in result] == ["legacy tree", "legacy tree", "near", ""]


def test_a_rule_not_judged_is_never_called_unused():
    """`--select GYR201` must not turn the comments of other rules into findings."""
    assert run("x = 1  # gyre: ignore[GYR203] why\n", judged={"GYR201", "GYR002"}) == ()
    assert len(run("x = 1  # gyre: ignore[GYR203] why\n", judged={"GYR203", "GYR002"})) == 1
    assert run("x = 1  # gyre: ignore[GYR203] why\n", judged={"GYR203"}) == ()


def test_an_unparsable_file_gets_no_complaint():
    """What a file that does not parse would have shown is unknown, so its comments are not judged."""
    result = run("x = (\n# gyre: ignore[GYR203] why\n", found(1, "GYR001"))
    assert [f.code for f in result] == ["GYR001"]


def test_the_fix_removes_the_comment_and_nothing_else():
    """A trailing comment goes with the blanks before it; one on its own line goes with its line."""
    trailing, own = run("x = 1  # gyre: ignore[GYR203] a\n\n    # gyre: ignore[GYR203] b\n")
    (cut,) = trailing.fixes[0].replacements
    assert (cut.line, cut.column, cut.end_line, cut.end_column, cut.text) == (1, 6, 1, 32, "")
    (cut,) = own.fixes[0].replacements
    assert (cut.line, cut.column, cut.end_line, cut.end_column) == (3, 1, 4, 1)


def test_encodings_and_line_ends():
    """BOM, CRLF and a coding cookie change nothing; columns count characters."""
    text = "# -*- coding: latin-1 -*-\r\nx = rm('é')  # gyre: ignore[GYR203] é\r\n"
    assert run(text.encode("latin-1"), found(2))[0].suppressed == "é"
    assert run(b"\xef\xbb\xbfx = rm(a)  # gyre: ignore[GYR203] why\n", found(1))[0].suppressed == "why"
    assert read_suppressions("x = 'é'  # gyre: ignore[GYR203] w\n".encode())[0].column == 10


@given(st.text(alphabet="ab()[]{}:#@'\"\\\n\t gyre:ignore-file[GYR203]until=2", max_size=120))
def test_any_text_is_read_without_a_traceback(text):
    """Whatever the file holds, comments are read or left, and every span lies on its line."""
    for comment in read_suppressions(text.encode() + b"# gyre: ignore[GYR203] why"):
        assert comment.line >= 1
        assert 1 <= comment.column < comment.end_column
        assert comment.first <= comment.last
