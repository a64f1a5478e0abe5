"""Promises of the last step before a terminal: what it is sent, and what happens when nobody takes it."""

import os
import subprocess
import sys
import textwrap

import pytest

EVIL = "k\x1b]0;title\x07\x9b31m\u202eend"


def gyrecheck(*words, folder=None, **streams):
    env = {k: v for k, v in os.environ.items() if k not in {"NO_COLOR", "FORCE_COLOR", "COLUMNS"}}
    return subprocess.run([sys.executable, "-m", "gyrecheck", *words], check=False, env=env, cwd=folder, **streams)


@pytest.mark.parametrize("form", ["full", "concise", "md", "csv", "json", "jsonl", "html", "github", "sarif"])
def test_names_in_a_report_never_reach_the_terminal_raw(run, form):
    """A key of a record that holds escapes is shown with its escapes visible, in every format."""
    import json
    from pathlib import Path

    row = {EVIL: 1.0, "action": 1, "reward": 1.0, "terminated": False}
    Path("a.jsonl").write_text(json.dumps(row) + "\n" + json.dumps(row | {EVIL: None}) + "\n")
    for word in ("show", "check"):
        done = run("handoff", word, "a.jsonl", "--output-format", form)
        assert not set(done.out + done.err) & set("\x1b\x07\x9b\u202e"), done.out


def test_an_argument_in_an_error_is_shown_not_obeyed(run):
    """Our own errors and those of the option parser show an argument's escapes; a new line in a path starts no second row."""
    assert "\\x1b[31mx" in run("explain", "\x1b[31mx").err
    assert "\\x1b[31mx" in run("lint", "--fail-on", "\x1b[31mx").err
    missing = run("lint", "no\nerror: fake").err
    assert missing.splitlines()[0] == "error: no\\nerror: fake: no such file or directory"


@pytest.mark.skipif(os.name == "nt", reason="POSIX streams")
@pytest.mark.parametrize("words", [["vocab"], ["--help"], ["lint", "--help"], ["explain", "GYR203"]])
def test_a_closed_or_full_output_is_one_sentence_and_exit_2(words):
    """`>&-` and a full device end with exit 2 and a sentence, never a traceback."""
    closed = gyrecheck(*words, stderr=subprocess.PIPE, preexec_fn=lambda: os.close(1))
    with open("/dev/full", "w") as full:
        filled = gyrecheck(*words, stderr=subprocess.PIPE, stdout=full)
    for done in (closed, filled):
        assert done.returncode == 2
        assert done.stderr.startswith(b"error: ")
        assert b"Traceback" not in done.stderr


@pytest.mark.skipif(os.name == "nt", reason="POSIX streams")
@pytest.mark.parametrize("words", [["vocab"], ["rules"], ["explain", "GYR203"]])
def test_a_reader_that_left_changes_no_exit_code(words):
    """Both streams into a pipe whose reader is gone: the code is the report's own, 0, in silence."""
    reader, writer = os.pipe()
    os.close(reader)
    try:
        assert gyrecheck(*words, stdout=writer, stderr=writer).returncode == 0
    finally:
        os.close(writer)


def test_ctrl_c_during_the_imports_is_130_in_one_word():
    """An interruption while the first modules load is said in a word, with exit 130 and no traceback."""
    program = textwrap.dedent("""
        import sys
        from gyrecheck import cli
        class Interrupting:
            def find_spec(self, name, path=None, target=None):
                if name == "typer":
                    raise KeyboardInterrupt
        sys.meta_path.insert(0, Interrupting())
        sys.argv = ["gyrecheck", "rules"]
        cli.main()
    """)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "interrupted\n")


@pytest.mark.skipif(sys.platform != "linux", reason="names of any bytes")
@pytest.mark.parametrize("form", ["full", "concise", "md", "csv", "json", "jsonl", "html", "github", "gitlab", "junit", "sarif"])
def test_a_name_that_is_no_text_is_shown_and_checked(run, form):
    """A file whose name is no UTF-8 is read like any other, in a folder too, and its odd bytes are shown."""
    name = os.fsdecode(b"\xff\xfe")
    with open(f"{name}.py", "w") as file:
        file.write("import torch\noptimizer.step(\n")
    with open(f"{name}.log", "w") as file:
        file.writelines(f"iter {n}: sampled_total={10 * n} dropped_stale=0 taken={5 * n} buffer_left=0\n" for n in range(1, 9))
    for words in (("lint", "."), ("ledger", f"{name}.log"), ("ledger", "."), ("watch", "--once", f"{name}.log"), ("lint", f"{name}.py")):
        done = run(*words, "--output-format", form)
        assert done.code in {0, 1, 2, 3}
        assert "internal" not in done.err
        (done.out + done.err).encode()
    assert "ff" in done.out + done.err


def test_nothing_is_loaded_before_ctrl_c_is_heard():
    """The command's first module loads none of its other modules, nor `typing`, before `main` stands guard."""
    root = os.path.dirname(os.path.dirname(os.path.dirname(__file__)))
    program = f"import sys; sys.path.insert(0, {root!r}); import gyrecheck.cli; print(*sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", program], capture_output=True, text=True, check=True)
    assert {m for m in done.stdout.split() if m.startswith("gyrecheck")} == {"gyrecheck", "gyrecheck.cli"}
    assert "typing" not in done.stdout.split()


def test_an_interrupted_report_is_130_whatever_it_holds(capsys):
    """A report marked partial ends with 130 and says so in its machine form, not with the code of half a judgement."""
    import json

    import typer

    from gyrecheck.commands.options import finish
    from gyrecheck.model.finding import Report

    with pytest.raises(typer.Exit) as left:
        finish(Report("watch", partial=True), output_format=["json"])
    assert left.value.exit_code == 130
    assert json.loads(capsys.readouterr().out)["exit"] == 130


def test_a_line_of_a_log_is_quoted_without_its_escapes(run):
    """The evidence that a log's line gives holds no 8-bit escape and no bidi override, in the picture of a run neither."""
    with open("a.log", "w", encoding="utf-8") as file:
        file.writelines(
            f"iter {n}: sampled_total={10 * n} taken={9 * n} dropped_stale=0 buffer_left=0 msg=\x9b31m\u202e\n" for n in range(1, 9)
        )
    for words in (
        ("ledger", "a.log"),
        ("watch", "--once", "a.log"),
        ("watch", "a.log", "--timeout", "0"),
        ("ledger", "a.log", "--explain"),
    ):
        done = run(*words)
        assert not set(done.out + done.err) & set("\x1b\x9b\u202e")
        assert "internal" not in done.err
    assert "\\x9b31m\\u202e" in run("ledger", "a.log").out
