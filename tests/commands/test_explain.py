"""`gyrecheck explain`: one page a code, one a topic, each from its source."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from gyrecheck.cli import build_app
from gyrecheck.commands.explain import explanation, find
from gyrecheck.commands.explain_topics import EXITS, KEYS, TOPICS
from gyrecheck.model.errors import ExitCode, GyreError
from gyrecheck.rulebook.codes import load_codes
from gyrecheck.rulebook.project_config import ProjectConfig


def run(*words: str) -> tuple[int, str]:
    """The exit code and standard output of `gyrecheck explain WORDS`."""
    result = CliRunner().invoke(build_app("explain"), ["explain", *words])
    return result.exit_code, result.stdout


@pytest.mark.parametrize("code", sorted(load_codes()))
def test_every_code_says_what_why_when_and_how_to_mend(code: str) -> None:
    """The page of every code holds each of its parts, and only words, no empty heading."""
    page = explanation(load_codes()[code], load_codes())
    assert page.startswith(code)
    for heading in ("\nWhat   ", "\nWhy    ", "\nFix    "):
        assert heading in page
    assert "Not an alarm   \n" not in page


def test_a_code_is_found_by_number_name_and_family() -> None:
    """`GYR203`, `203`, its name and the family `GYR2` all lead to it."""
    codes = load_codes()
    for word in ("GYR203", "gyr203", "203", "reward-model-in-loss"):
        assert [c.code for c in find(codes, word)] == ["GYR203"]
    family = [c.code for c in find(codes, "GYR2")]
    assert "GYR203" in family
    assert all(code.startswith("GYR2") for code in family)


def test_a_wrong_code_names_the_nearest_and_the_topics() -> None:
    """A look-alike (letter O for zero) is answered with the right code and the list of topics."""
    with pytest.raises(GyreError) as caught:
        find(load_codes(), "GYR2O3")
    assert "did you mean `GYR203`?" in caught.value.hint
    assert "exit-codes" in caught.value.hint


@pytest.mark.parametrize("topic", sorted(TOPICS))
def test_every_topic_has_a_page(topic: str) -> None:
    """Each topic prints more than its heading and ends with a newline."""
    page = TOPICS[topic][1](None)
    assert page.count("\n") > 5
    assert page.endswith("\n")


def test_exit_codes_and_configuration_keys_are_all_described() -> None:
    """No exit code and no configuration key is left out of its page."""
    assert set(EXITS) == set(ExitCode)
    assert set(KEYS) == {name.replace("_", "-") for name in ProjectConfig.__dataclass_fields__} - {"root"}


def test_samples_are_shown_with_their_marked_lines() -> None:
    """`--samples` prints every sample; the line where the finding is expected bears a mark."""
    code, text = run("GYR209", "--samples")
    assert code == 0
    assert text.count("\nSample ") == len(load_codes()["GYR209"].samples)
    assert ">  12 |                 schedule.step()" in text


def test_json_holds_every_part_of_the_page() -> None:
    """The machine format is a table of code, name, part and text."""
    code, text = run("GYR203", "--output-format", "json")
    table = json.loads(text)["tables"]["explanation"]
    assert code == 0
    assert [row[2] for row in table["rows"]] == ["what", "why", "alarm", "not_alarm", "fix"]


def test_without_a_subject_the_topics_are_listed() -> None:
    """The bare command says what it can explain and exits 0."""
    code, text = run()
    assert code == 0
    assert all(topic in text for topic in TOPICS)


def test_without_a_subject_json_is_an_object() -> None:
    """The bare command in a machine format gives the topics as a table."""
    code, text = run("--output-format", "json")
    assert code == 0
    assert [row[0] for row in json.loads(text)["tables"]["topics"]["rows"]] == list(TOPICS)


def test_a_code_far_from_every_other_suggests_none() -> None:
    """Of a number one digit may be wrong; a code that is near to nothing gets no guess."""
    with pytest.raises(GyreError) as caught:
        find(load_codes(), "GYR999")
    assert "did you mean" not in caught.value.hint
