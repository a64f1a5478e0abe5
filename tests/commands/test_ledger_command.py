"""`gyrecheck ledger` as a program: exit codes, one clear sentence for bad input, and what is written beside the report."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gyrecheck.cli import build_app
from gyrecheck.commands.ledger_run import Request, ledger_of
from gyrecheck.model.errors import GyreError
from gyrecheck.rulebook.codes import load_codes
from gyrecheck.stream.open_log import refuse_unreadable

CASES = Path(__file__).parents[2] / "fixtures" / "logs" / "cases"
LOST = str(CASES / "035-held-back-samples-lost-on-resume" / "input.log")
WHOLE = str(CASES / "035-held-back-samples-lost-on-resume" / "clean.log")
OPEN = str(CASES / "062-trained-counter-stays-zero" / "clean.log")


def _run(*arguments: str, stdin: str = "") -> tuple[int, str]:
    result = CliRunner().invoke(build_app("ledger"), ["ledger", *arguments], input=stdin)
    if isinstance(result.exception, GyreError):
        raise result.exception
    return result.exit_code, result.stdout


@pytest.mark.parametrize(("path", "code"), [(WHOLE, 0), (LOST, 1), (OPEN, 3)])
def test_exit_codes(path: str, code: int) -> None:
    """0 for a balance that holds, 1 for a broken one, 3 for an undecided one."""
    assert _run(path)[0] == code


def test_json_names_the_first_line() -> None:
    """The JSON object holds state, quantity, value, first line with its text, and the exit code of the process."""
    code, text = _run(LOST, "--output-format", "json")
    report = json.loads(text)
    verdict = next(v for v in report["verdicts"] if v["code"] == "GYR507")
    assert (verdict["state"], verdict["quantity"], verdict["value"], verdict["first"]["line"]) == ("broken", "unaccounted", 384, 10)
    assert "held_back=64" in verdict["first"]["text"]
    assert report["exit"] == code == 1


def test_standard_input_is_read() -> None:
    """`-` reads the log from standard input."""
    assert _run("-", stdin=Path(WHOLE).read_text(encoding="utf-8"))[0] == 0


def test_left_closes_an_open_balance(tmp_path: Path) -> None:
    """800,000 sampled, 796,000 trained and --left 4000 hold."""
    log = tmp_path / "run.log"
    log.write_text("".join(f"sampled={s} trained={s - 4000}\n" for s in (80000, 400000, 800000)))
    assert _run(str(log))[0] == 3
    assert _run(str(log), "--left", "4000")[0] == 0


def test_left_of_the_log_wins(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Where the log says that 0 are left, --left 5 changes nothing, and one sentence says so."""
    log = tmp_path / "run.log"
    log.write_text("".join(f"iter {n}: sampled_total={8 * n} dropped_stale=0 taken={8 * n} buffer_left=0\n" for n in (1, 2, 3)))
    request = Request((str(log),), left=5, quiet=False)
    report = ledger_of(request, load_codes())
    assert "24 sampled = 24 taken + 0 stale + 0 left" in next(v for v in report.verdicts if v.code == "GYR507").message
    assert "--left 5 is not used: the log says itself what is left (`buffer_left`: 0)" in capsys.readouterr().err


TIMELESS = "".join(f"iter {n}: sampled_total={8 * n} taken={8 * n} buffer_left=0\n" for n in (1, 2, 3))
TIMED = "2026-01-01 00:00:01 sampled_total=5 taken=5 buffer_left=0\n"


@pytest.mark.parametrize(
    ("text", "options", "words", "hint"),
    [
        (TIMELESS, ("--since", "14:00:00"), "no line has a time", "leave them out"),
        (TIMED, ("--since", "2026-01-02T00:00:00Z"), "nothing that is understood was written from 2026-01-02T00:00:00Z", "leave"),
        (TIMELESS, ("--map", "sampled_total=nokey"), "no key `nokey`", "the log has: buffer_left"),
        (TIMELESS, ("--map", "taken=takn"), "no key `takn`", "did you mean `taken`?"),
        (TIMELESS, ("--map", "bogus=taken"), "`bogus` is no term", "sampled_total"),
        (TIMELESS, ("--left", "nan"), "no finite number", "--left 4000"),
    ],
)
def test_an_option_that_meets_nothing_is_one_sentence(text: str, options: tuple[str, ...], words: str, hint: str, tmp_path: Path) -> None:
    """Times asked of a log without them, keys that it does not have, unknown terms and no number are refused, and what there is is said."""
    log = tmp_path / "run.log"
    log.write_text(text)
    with pytest.raises(GyreError) as error:
        _run(str(log), *options)
    assert words in error.value.message
    assert hint in (error.value.hint or "")


def test_a_pipe_is_read_once(tmp_path: Path) -> None:
    """A pipe given by its path, as of a process substitution, is read as standard input is."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=(TIMELESS,))
    writer.start()
    report = ledger_of(Request((str(pipe),)), load_codes())
    writer.join()
    assert "24 sampled = 24 taken" in next(v for v in report.verdicts if v.code == "GYR507").message


@pytest.mark.parametrize("command", ["ledger", "watch"])
def test_a_folder_that_may_not_be_read_is_one_sentence(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder without the right to list it, and standard input that is closed, end in a sentence and no fault of our own."""

    def refused(_: object) -> object:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("gyrecheck.stream.open_log.os.scandir", refused)
    result = CliRunner().invoke(build_app(command), [command, str(tmp_path)])
    assert isinstance(result.exception, GyreError)
    assert result.exception.message == f"{tmp_path}: cannot be read (Permission denied)"
    monkeypatch.undo()
    monkeypatch.setattr("gyrecheck.stream.open_log.sys.stdin", None)
    with pytest.raises(GyreError, match="standard input is closed"):
        refuse_unreadable(("-",))


def test_follow_names_watch() -> None:
    """--follow refuses and names the command that looks on."""
    with pytest.raises(GyreError) as error:
        _run(LOST, "--follow")
    assert "gyrecheck watch" in error.value.hint


@pytest.mark.parametrize(
    ("content", "words"),
    [(b"", "empty"), (bytes(range(32)) * 200, "binary"), (b"hello\n" * 20, "no known log format fits")],
)
def test_bad_input_is_one_sentence(content: bytes, words: str, tmp_path: Path) -> None:
    """An empty, a binary and a foreign file each end in one sentence that says so."""
    log = tmp_path / "run.log"
    log.write_bytes(content)
    with pytest.raises(GyreError) as error:
        _run(str(log))
    assert words in error.value.message


def test_a_line_without_end_is_named(tmp_path: Path) -> None:
    """A log that is one line longer than can be held says so, in one sentence."""
    path = tmp_path / "train.log"
    path.write_bytes(b"sampled=3 " * ((9 << 20) // 10))
    with pytest.raises(GyreError, match=r"no known log format fits .*line 1 is longer than 8 MiB and was passed over"):
        _run(str(path))


def test_empty_standard_input_is_named() -> None:
    """Nothing on standard input is said to be nothing, not an unknown format."""
    with pytest.raises(GyreError, match="standard input is empty"):
        _run("-")


@pytest.mark.parametrize(
    ("error", "words"), [(PermissionError(13, "Permission denied"), "cannot be read"), (FileNotFoundError(), "disappeared")]
)
def test_file_that_cannot_be_read(error: OSError, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that may not be read, or goes away between being found and being read, is one sentence with its path."""
    path = tmp_path / "train.log"
    path.write_text("sampled=3 taken=3\n", encoding="utf-8")

    def refuse(_: object) -> None:
        raise error

    monkeypatch.setattr("gyrecheck.stream.open_log._opened", refuse)
    with pytest.raises(GyreError, match=f"train.log: {words}"):
        _run(str(path))


def test_folder_without_logs_is_refused(tmp_path: Path) -> None:
    """A folder that holds no log cannot be checked."""
    with pytest.raises(GyreError, match="holds no logs"):
        _run(str(tmp_path))


def test_page_figure_and_columns(tmp_path: Path) -> None:
    """The page needs no network, the figure is drawn, and the columns hold one value a row: 12 lines x 5 terms, and 3 x 2 beside them."""
    page, figure, columns = tmp_path / "a.html", tmp_path / "a.svg", tmp_path / "a.csv"
    _run(LOST, "--html", str(page), "--figure", str(figure), "--columns", str(columns))
    text = page.read_text(encoding="utf-8")
    assert "384 unaccounted" in text
    assert "<svg" in text
    assert 'src="http' not in text
    assert "<svg" in figure.read_text(encoding="utf-8")
    rows = columns.read_text(encoding="utf-8").splitlines()
    assert rows[0].startswith("path,line,offset,time")
    assert sum(",held_back," in row for row in rows) == 12


def test_existing_output_is_kept(tmp_path: Path) -> None:
    """A figure that exists is not overwritten without --force."""
    figure = tmp_path / "a.svg"
    figure.write_text("mine")
    with pytest.raises(GyreError, match="exists already"):
        _run(LOST, "--figure", str(figure))
    assert figure.read_text() == "mine"


def test_markup_in_a_log_is_shown_as_it_is(tmp_path: Path) -> None:
    """Brackets of a log line reach the page escaped and the text unchanged."""
    log = tmp_path / "run.log"
    log.write_text("".join(f"[/x] <b> sampled={100 * i} taken={100 * i - 60 * (i > 3)} dropped=0 left=0\n" for i in range(1, 9)))
    page = tmp_path / "a.html"
    _, text = _run(str(log), "--html", str(page))
    assert "[/x] <b> sampled=400" in text
    assert "&lt;b&gt;" in page.read_text(encoding="utf-8")
