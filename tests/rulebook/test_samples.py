"""Every rule proves itself: one test a sample, for every engine; an engine that proves nothing fails its samples."""

from __future__ import annotations

import pytest

from gyrecheck.commands.rule_proofs import Proof, failure, incomplete, load_all, proofs
from gyrecheck.rulebook.codes import Code, load_codes

ALL = tuple(proofs())


@pytest.mark.parametrize("proof", ALL, ids=lambda proof: f"{proof.code.code}-{proof.number}-{proof.sample.engine}-{proof.sample.expect}")
def test_sample_proves_its_rule(proof: Proof) -> None:
    """A found sample shows its code on one of its lines, a silent one nowhere."""
    assert not failure(proof), f"{proof.path}: sample {proof.number} ({proof.sample.expect}) {failure(proof)}"


@pytest.mark.parametrize("code", load_codes().values(), ids=lambda code: code.code)
def test_rule_has_samples_in_both_directions(code: Code) -> None:
    """Each rule shows at least one thing it finds and one it leaves alone, in engines that it names."""
    assert not incomplete(code), f"{code.code} {incomplete(code)}"


@pytest.mark.parametrize("code", load_codes().values(), ids=lambda code: code.code)
def test_see_leads_somewhere(code: Code) -> None:
    """`see` names codes that exist."""
    assert not set(code.see) - set(load_codes())


def test_every_kind_of_rule_file_loads() -> None:
    """Vocabulary, regions, logs, fields, keys and ladders load without a problem."""
    assert [problem.message for problem in load_all()] == []
