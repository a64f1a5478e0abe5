"""Promises of the writers: one report, every format, nothing lost and nothing eaten."""

import json
from pathlib import Path

import jsonschema
import pytest

import gyrecheck.report
from gyrecheck.model.errors import GyreError
from gyrecheck.model.finding import Evidence, Finding, First, Report, Severity, State, Step, Table, Verdict
from gyrecheck.report.style import Style
from gyrecheck.report.table import text_table
from gyrecheck.report.writers import WRITERS, writer

PLAIN = Style(color=False)
FINDING = Finding(
    code="GYR203",
    name="reward-model-in-loss",
    severity=Severity.ERROR,
    message="`self.rm` is called while the loss is computed, shape [batch, time]",
    path="src/agent/ppo.py",
    line=88,
    column=18,
    end_line=88,
    end_column=37,
    snippet="        reward = self.rm(batch.obs, [/x])",
    evidence=(Evidence("src/agent/ppo.py", 86, "    def loss(self, batch):", 9, 13, "its result reaches `loss.backward` at line 130"),),
    hint="score in the sampler and read batch.reward here",
    fingerprint="0123456789abcdef",
)
VERDICT = Verdict(
    code="GYR507",
    name="conservation-gap",
    severity=Severity.ERROR,
    state=State.BROKEN,
    quantity="unaccounted",
    value=384.0,
    unit="trajectory",
    message="384 trajectories are unaccounted for",
    first=First("train.log", 9, "00:00:07", "iter 7: generated=1792"),
    evidence=(Evidence("train.log", 8, "restart from iter 6", label="the restart before it"),),
    steps=(Step("sampled > 0", "pass", "18,432"), Step("consumed > 0", "FAIL"), Step("carrier", "skipped")),
    next="gyrecheck explain GYR507",
)
REPORT = Report(
    command="ledger",
    inputs=("train.log",),
    topology="decoupled",
    findings=(FINDING,),
    verdicts=(VERDICT,),
    tables={"balance": Table(("term", "count"), (("sampled", 18432), ("share", 0.25), ("residual", float("nan"))), title="Balance")},
    heading=("Run r-1",),
    not_judged=("logprob ratio (no weights given)",),
    summary="Found 1 error.",
)


def test_json_fits_its_schema_and_repeats_the_exit_code():
    """The object every command writes fits the JSON Schema that travels in the package, and carries the number the process returns."""
    schema = json.loads(Path(gyrecheck.report.__file__).with_name("report.schema.json").read_text(encoding="utf-8"))
    written = json.loads(writer("json")(REPORT, exit_code=1, style=PLAIN))
    jsonschema.Draft202012Validator(schema).validate(written)
    assert written["exit"] == 1
    assert written["verdicts"][0]["value"] == 384
    assert written["tables"]["balance"]["rows"][2] == ["residual", "nan"]


def test_json_lines_are_one_object_each_and_close_with_a_summary():
    """Each finding and verdict is one line of JSON, and the last line says how many inputs and which exit code."""
    rows = [json.loads(line) for line in writer("jsonl")(REPORT, exit_code=1, style=PLAIN).splitlines()]
    assert [row["kind"] for row in rows] == ["verdict", "finding", "summary"]
    assert rows[-1]["exit"] == 1


def test_full_shows_every_bracket_and_every_piece_of_evidence():
    """Shapes and closing tags that look like markup reach the reader, as do both source lines, the label, the rungs and the hint."""
    text = writer("full")(REPORT, exit_code=1, style=PLAIN)
    for needed in (
        "error[GYR203] reward-model-in-loss",
        "[batch, time]",
        "[/x]",
        "--> src/agent/ppo.py:88:18",
        "---- because: its result reaches",
        "^^^^",
        "hint: score in the sampler",
        "error[GYR507] conservation-gap",
        "train.log:9",
        "the restart before it",
        "consumed > 0",
        "skipped",
        "Not judged: logprob ratio",
        "18,432",
    ):
        assert needed in text
    assert "\x1b" not in text


def test_full_underlines_exactly_the_span():
    """The carets stand below columns 18 to 36 of the line, 19 signs."""
    lines = writer("full")(REPORT, exit_code=1, style=PLAIN).splitlines()
    at = next(i for i, line in enumerate(lines) if "[/x]" in line and "|" in line)
    marks = lines[at + 1]
    body = marks.split("| ", 1)[1]
    assert body.index("^") == 17
    assert body.count("^") == 19


def test_colour_never_replaces_a_word():
    """With the colour codes taken out, coloured text is the plain text."""
    import re

    coloured = writer("full")(REPORT, exit_code=1, style=Style(color=True))
    assert "\x1b[" in coloured
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == writer("full")(REPORT, exit_code=1, style=PLAIN)


def test_concise_is_one_line_each():
    """Editors get `path:line:col: severity CODE name: message`, and a verdict points at its first wrong line."""
    lines = writer("concise")(REPORT, exit_code=1, style=PLAIN).splitlines()
    assert lines[0].startswith("src/agent/ppo.py:88:18: error GYR203 reward-model-in-loss: ")
    assert lines[1].startswith("train.log:9: error GYR507 conservation-gap: ")


def test_markdown_and_csv_hold_the_table():
    """The first table is whole in both table formats."""
    assert "| sampled | 18,432 |" in writer("md")(REPORT, exit_code=1, style=PLAIN)
    assert writer("csv")(REPORT, exit_code=1, style=PLAIN).splitlines()[:2] == ["term,count", "sampled,18432"]


@pytest.mark.parametrize("name", sorted(WRITERS))
def test_every_registered_writer_exists_and_ends_its_text(name):
    """A format that is offered can be written, for a full report and for an empty one."""
    for report in (REPORT, Report(command="lint")):
        text = writer(name)(report, exit_code=0, style=PLAIN)
        assert text == "" or text.endswith("\n")


def test_an_unknown_format_names_all():
    """A wrong format name is answered with the near one and the whole list."""
    with pytest.raises(GyreError) as caught:
        writer("jsn")
    assert "did you mean `json`?" in caught.value.hint
    assert all(name in caught.value.hint for name in WRITERS)


def test_a_table_is_fitted_to_a_terminal_and_whole_elsewhere():
    """With a width the words are folded, numbers stay whole, and a cell of more than three lines ends with `…`; without one nothing is."""
    table = Table(("name", "n", "what"), (("a" * 10, 1234, "one two three four five six seven"), ("b", 5, "w" * 200)))
    fitted = text_table(table, width=40)
    assert max(map(len, fitted)) <= 40
    assert fitted[1:3] == ["  aaaaaaaaaa  1,234  one two three four", "                     five six seven"]
    assert len(fitted) == 1 + 2 + 3
    assert fitted[-1].endswith("…")
    assert text_table(table)[2].endswith("w" * 200)
