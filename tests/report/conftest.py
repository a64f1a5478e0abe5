"""One report that has everything a CI format must carry, and the comparison with the golden files.

`UPDATE_GOLDEN=1 pytest tests/report` writes the golden files anew.
"""

import os
from pathlib import Path

import pytest

from gyrecheck import __version__
from gyrecheck.model.finding import Confidence, Evidence, Finding, First, Report, Severity, State, Verdict
from gyrecheck.model.fix import Fix, Replacement

GOLDEN = Path(__file__).parent / "golden"


@pytest.fixture
def golden():
    """Compare text with a golden file, the version number left out."""

    def check(name, text):
        text = text.replace(f'"{__version__}"', '"VERSION"')
        path = GOLDEN / name
        if os.environ.get("UPDATE_GOLDEN"):
            path.write_bytes(text.encode())
        assert text.encode() == path.read_bytes()

    return check


@pytest.fixture
def ci_report():
    """An error with a chain, one with a fix, a suppressed and a baselined one, a note by name only, one without a line, three verdicts."""
    return Report(
        command="lint",
        inputs=("src",),
        topology="decoupled",
        findings=(
            Finding(
                code="GYR203",
                name="reward-model-in-loss",
                severity=Severity.ERROR,
                message="`self.rm` is called while the loss is computed",
                path="src/agent/ppo one.py",
                line=88,
                column=18,
                end_line=88,
                end_column=50,
                snippet="        reward = self.rm(batch.obs, batch.action)",
                evidence=(
                    Evidence("src/agent/ppo one.py", 130, "        loss.backward()", 9, 24, "its result reaches loss.backward"),
                    Evidence("src/agent/score.py", 12, "    return self.model(x)", 12, 25),
                ),
                hint="score in the sampler and read batch.reward here",
                fingerprint="aaaaaaaaaaaaaaaa",
            ),
            Finding(
                code="GYR206",
                name="step-without-zero-grad",
                severity=Severity.WARNING,
                message="second `optimizer.step` with shape [B, T](2) and {0}, 100% sure",
                path="src/a.py",
                line=3,
                column=1,
                end_line=4,
                end_column=2,
                fingerprint="bbbbbbbbbbbbbbbb",
                fixes=(Fix("insert opt.zero_grad()", safe=False, replacements=(Replacement(4, 1, 4, 1, "opt.zero_grad()\n"),)),),
            ),
            Finding("GYR206", "step-without-zero-grad", Severity.WARNING, "known", "src/a.py", 9, fingerprint="bbbbbbbbbbbbbbbb"),
            Finding(
                "GYR206",
                "step-without-zero-grad",
                Severity.WARNING,
                "old",
                "src/a.py",
                20,
                5,
                fingerprint="cccccccccccccccc",
                baselined=True,
            ),
            Finding(
                "GYR201",
                "env-import-in-training",
                Severity.ERROR,
                "imports `gym`",
                "src/b.py",
                7,
                8,
                suppressed="tests only",
                fingerprint="d" * 16,
            ),
            Finding("GYR103", "forward-without-no-grad", Severity.NOTE, "`policy(obs)` \x1b[0m", "src/b.py", 1, confidence=Confidence.HINT),
            Finding("GYR001", "unparsable-source", Severity.ERROR, "not UTF-8,\nat byte 3: 0xff", "src/ü,:.py"),
        ),
        verdicts=(
            Verdict(
                "GYR507",
                "conservation-gap",
                Severity.ERROR,
                State.BROKEN,
                "residual",
                3,
                "trajectory",
                "3 lost",
                First("run.log", 7, text="x"),
            ),
            Verdict("GYR404", "over-age-consumed", Severity.ERROR, State.UNDECIDED, message="no ages"),
            Verdict("GYR501", "coupled-counters", Severity.ERROR, State.HOLDS, message="independent"),
        ),
        skipped=("src/link.py: a symbolic link loop",),
        unresolved=2,
        summary="Found 4 errors, 2 warnings, 1 note in 4 of 9 files.",
        statistics={"baselined": 1},
    )
