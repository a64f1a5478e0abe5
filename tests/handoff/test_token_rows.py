"""One row a token: the rows of a sample are its steps, the token is what was done, and the counter tells where an answer ends."""

from __future__ import annotations

import json
import math
import random

import pytest
from typer.testing import CliRunner

from gyrecheck.cli import build_app


def _rows() -> list[dict[str, object]]:
    chance, rows = random.Random(6), []
    for sample in range(24):
        for pos in range(chance.randrange(4, 9)):
            lp = -chance.expovariate(1.2) - 0.002
            row = {"sample": f"s{sample}", "pos": pos, "token": chance.randrange(9000), "logp": round(lp, 4), "in_loss": 1, "version": 6}
            rows.append(row | {"learner_version": 6, "learner_logp": round(lp + chance.gauss(0, 0.003), 4)})
    return rows


def _last(rows, change):
    ends = [at for at, row in enumerate(rows) if at + 1 == len(rows) or rows[at + 1]["pos"] == 0]
    return [row | (change if at in ends else {}) for at, row in enumerate(rows)]


@pytest.mark.parametrize(
    ("change", "code", "says"),
    [
        (lambda rows: rows, "", ""),
        (lambda rows: [*rows[:30], rows[31], rows[30], *rows[32:]], "GYR310", "`pos`"),
        (lambda rows: [row | {"logp": round(math.exp(row["logp"]), 4)} for row in rows], "GYR335", "probabilities"),
        (lambda rows: _last(rows, {"learner_logp": -11.3}), "GYR402", "at the last step"),
    ],
)
def test_tokens_in_rows_of_their_own(tmp_path, change, code, says):
    """Rows in order whose log-probs agree give nothing; two exchanged, probabilities, and last tokens that do not replay are told as such."""
    path = tmp_path / "tokens.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in change(_rows())))
    done = json.loads(CliRunner().invoke(build_app(), ["handoff", "check", str(path), "--output-format", "json"]).stdout)
    found = {f["code"]: f["message"] for f in done["findings"] if f["severity"] != "note"}
    assert (code in found and says in found[code]) if code else not found
