"""Hostile input: whatever lies in the tree, `gyrecheck lint` ends in findings or one sentence, never in a traceback, and judges the rest."""

import json
import os
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

GOOD = """import torch


def fit(policy, batches):
    optimizer = torch.optim.Adam(policy.parameters(), lr=3e-4)
    for batch in batches:
        policy.surrogate(batch).backward()
        optimizer.step()
"""


def judged(done):
    """(code, path) of what was found; the command must have ended as a command does, with 2 only when no file could be read."""
    assert "internal error" not in done.err
    found = sorted({(f["code"], f["path"]) for f in json.loads(done.out)["findings"]})
    assert done.code in {0, 1} or (done.code == 2 and {code for code, _ in found} == {"GYR001"}), done.err
    return found


def lint(run, *words):
    return run("lint", *words, "--output-format", "json")


def deep(kind, n):
    return {
        "brackets": "x = " + "(" * n + ")" * n,
        "lists": "x = " + "[" * n + "]" * n,
        "not": "x = " + "not " * n + "y",
        "minus": "x = " + "-" * n + "1",
        "plus": "x = " + "1 + " * n + "1",
        "attributes": "x = a" + ".b" * n,
        "calls": "x = a" + "()" * n,
        "elif": "if a:\n    pass\n" + "elif b:\n    pass\n" * n,
        "lambda": "x = " + "lambda: " * n + "1",
        "ternary": "x = " + "1 if a else " * n + "2",
        "blocks": "".join(" " * i + "if a:\n" for i in range(n)) + " " * n + "pass",
        "functions": "".join(" " * i + "def f():\n" for i in range(min(n, 95))) + " " * min(n, 95) + "pass",
        "subscripts": "x = " + "a[" * n + "0" + "]" * n,
        "unclosed": "x = " + "(" * n,
    }[kind]


KINDS = [
    "brackets",
    "lists",
    "not",
    "minus",
    "plus",
    "attributes",
    "calls",
    "elif",
    "lambda",
    "ternary",
    "blocks",
    "functions",
    "subscripts",
    "unclosed",
]


@pytest.mark.parametrize("kind", KINDS)
def test_deep_nesting_is_read_or_reported(run, kind):
    """3,000 levels of anything: GYR001 for that file at most, and the finding of the file beside it stands."""
    Path("deep.py").write_text(deep(kind, 3000) + "\n")
    Path("good.py").write_text(GOOD)
    found = judged(lint(run))
    assert ("GYR206", "good.py") in found
    assert {code for code, path in found if path == "deep.py"} <= {"GYR001"}


@pytest.mark.parametrize("link", ["()", ".b()", ".step(x)", "[0]", " or b", ".b"])
def test_a_chain_that_python_itself_parses_is_followed_to_an_end(run, link):
    """900 links, fewer than Python's own limit: the file is read, and the program behind it is judged."""
    Path("chain.py").write_text("x = a" + link * 900 + "\n")
    Path("good.py").write_text(GOOD)
    assert judged(lint(run)) == [("GYR206", "good.py")]


def test_a_long_file_is_read(run):
    """100,000 lines with a finding and its ignore comment on the last: both are read, and the comment hides the finding."""
    body = "    a = a + 1\n" * 18
    filler = "".join(f"def f{n}(a):\n{body}    return a + {n}\n" for n in range(5_000))
    Path("long.py").write_text(filler + GOOD.replace("step()", "step()  # gyre: ignore[GYR206] summed on purpose"))
    done = lint(run)
    assert judged(done) == [("GYR206", "long.py")]
    assert [f["suppressed"] for f in json.loads(done.out)["findings"]] == ["summed on purpose"]
    assert json.loads(done.out)["findings"][0]["line"] == 100_008


def test_recursion_and_import_cycles_end(run):
    """Functions that call themselves and each other over files that import one another: the check ends, and finds what is there."""
    Path("a.py").write_text("import b\n\n\ndef f(env):\n    return b.g(env) + f(env)\n")
    Path("b.py").write_text("from a import f\nimport c\n\n\ndef g(env):\n    f(env)\n    return c.h(env)\n")
    Path("c.py").write_text(
        "from b import g\nfrom c import h\n\n\ndef h(env):\n    g(env)\n    return h(env)\n\n\nclass A(A):\n    pass\n\n\nclass B(C):\n    pass\n\n\nclass C(B):\n    pass\n"
    )
    Path("d.py").write_text("from d import *\nfrom e import *\n")
    Path("e.py").write_text("from d import *\nx = y = x\ny = x\n")
    Path("good.py").write_text(GOOD)
    assert ("GYR206", "good.py") in judged(lint(run))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"x = 1\n\x00\n", True),
        (b"x = '\xff'\n", True),
        (b"# -*- coding: nope -*-\nx = 1\n", True),
        (b"\xef\xbb\xbf# -*- coding: latin-1 -*-\nx = 1\n", True),
        (b"# -*- coding: latin-1 -*-\nx = '\xe9'\n", False),
        (b"# -*- coding: utf-8 -*-\nx = '\xe9'\n", True),
        (b"\xff\xfex\x00 \x00", True),
        (b"\xef\xbb\xbfx = 1\r\n", False),
        (b"x = 1\rimport re\r", False),
        (b"x = (\n", True),
        (b"def f(:\n", True),
        (b"\tx = 1\n  y = 2\n", True),
        (b"", False),
        (b"\n\n\n", False),
        (b"\x0c\nx = 1\n", False),
        (b"x = 1 # \xe2\x80\xa8 \xc2\x85\n", False),
        (b"print 'python 2'\n", True),
        (b"<<<<<<< HEAD\nx = 1\n=======\n", True),
    ],
)
def test_a_file_that_does_not_read_is_gyr001_and_hides_no_other(run, content, said):
    """NUL, wrong bytes, wrong cookies, other encodings, broken syntax: GYR001 or nothing, and the others are judged."""
    Path("odd.py").write_bytes(content)
    Path("good.py").write_text(GOOD)
    found = judged(lint(run))
    assert ("GYR206", "good.py") in found
    assert (("GYR001", "odd.py") in found) == said


def test_links_that_loop_are_walked_once(run):
    """A link to its own folder, a link to itself and a dangling one: the check ends; each real file is judged once."""
    Path("pkg").mkdir()
    Path("pkg/good.py").write_text(GOOD)
    Path("pkg/loop").symlink_to(Path("..").resolve())
    Path("self.py").symlink_to("self.py")
    Path("gone.py").symlink_to("nowhere.py")
    done = lint(run)
    found = judged(done)
    assert ("GYR206", "pkg/good.py") in found
    assert sum(f["code"] == "GYR206" for f in json.loads(done.out)["findings"]) == 1
    assert {code for code, path in found if path in {"self.py", "gone.py"}} <= {"GYR001"}


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="permissions do not bind this user")
def test_an_unreadable_file_is_gyr001(run):
    """A file without read permission is named, the others are judged."""
    Path("secret.py").write_text("x = 1\n")
    Path("secret.py").chmod(0)
    Path("good.py").write_text(GOOD)
    assert judged(lint(run)) == [("GYR001", "secret.py"), ("GYR206", "good.py")]


def test_a_file_that_cannot_be_read_is_gyr001(run, monkeypatch):
    """Whatever the system answers on reading, the file is named with the answer and the others are judged."""
    Path("bad.py").write_text("x = 1\n")
    Path("good.py").write_text(GOOD)
    plain = Path.read_bytes

    def read(path):
        if path.name == "bad.py":
            raise PermissionError(13, "Permission denied")
        return plain(path)

    monkeypatch.setattr(Path, "read_bytes", read)
    assert judged(lint(run)) == [("GYR001", "bad.py"), ("GYR206", "good.py")]


def test_a_folder_named_like_a_file_is_walked(run):
    """`x.py/` is a folder like any other; a FIFO is not waited for."""
    Path("x.py").mkdir()
    Path("x.py/good.py").write_text(GOOD)
    os.mkfifo("pipe.py")
    assert ("GYR206", "x.py/good.py") in judged(lint(run))


@pytest.mark.parametrize("name", ["sp ace.py", "ü.py", "a:b,c.py", "-x.py", "[x](1).py", "new\nline.py", "100%.py"])
def test_odd_names_travel_through_every_format(run, name):
    """Blanks, signs and line breaks in a file's name break no format."""
    Path(name).write_text(GOOD)
    assert judged(lint(run)) == [("GYR206", name)]
    for form in ("full", "concise", "jsonl", "sarif", "github", "gitlab", "junit", "md", "csv"):
        assert run("lint", "--output-format", form).code == 1


@pytest.mark.parametrize("words", [(), ("empty",), ("none.py",), ("a.txt",)])
def test_nothing_to_check_is_exit_2(run, words):
    """No Python file below a folder, a path that does not exist: nothing checked is no success. A named text file is read as Python."""
    Path("empty").mkdir()
    Path("a.txt").write_text("not python at all")
    done = run("lint", *words)
    assert done.code == 2
    if words == ("a.txt",):
        assert "GYR001" in done.out
    else:
        assert done.err.startswith("error: ")
        assert done.out == ""


def test_a_rules_file_with_an_unknown_key_is_exit_2(run):
    """The file, the key and the nearest known one are named, and nothing is checked with half a rulebook."""
    Path("pyproject.toml").write_text('[tool.gyrecheck]\nrules = "own"\n')
    Path("own/vocabulary").mkdir(parents=True)
    Path("own/codes").mkdir()
    Path("own/codes/GYR299-mine.toml").write_text(
        'code = "GYR299"\nname = "mine"\nengines = ["lint"]\nseverty = "note"\nseverity = "note"\nwhat = "w"\nwhy = "y"\nfix = "f"\n'
    )
    Path("good.py").write_text(GOOD)
    done = run("lint")
    assert done.code == 2
    assert "GYR299-mine.toml" in done.err
    assert "severty" in done.err
    assert "severity" in done.err
    Path("own/codes/GYR299-mine.toml").write_text("not toml [")
    assert run("lint").code == 2


@pytest.mark.parametrize("text", ['topolgy = "decoupled"', 'topology = "sideways"', 'select = "GYR2"', "select = 3"])
def test_a_wrong_setting_is_exit_2(run, text):
    """A key or value that does not fit ends the run with one sentence."""
    Path("pyproject.toml").write_text(f"[tool.gyrecheck]\n{text}\n")
    Path("good.py").write_text(GOOD)
    done = run("lint")
    assert done.code == 2
    assert done.err.startswith("error: ")
    assert text.partition(" ")[0] in done.err


def test_the_recursion_limit_and_the_collector_are_left_as_they_were(run):
    """What is raised for deep files is put back, whatever the file."""
    import gc

    before = sys.getrecursionlimit(), gc.isenabled()
    Path("deep.py").write_text(deep("plus", 3000))
    Path("bad.py").write_text(deep("unclosed", 3000))
    lint(run)
    assert (sys.getrecursionlimit(), gc.isenabled()) == before


PIECES = st.sampled_from(
    ["def f(env):", "class A(B):", "    ", "\n", "\t", "env.step(a)", "x = ", "loss.backward()", "for i in y:", "if x:", "else:", "try:", "except E:", "return", "(", ")", "[", "]", "{", "}", ":", ",",
     "lambda:", "async ", "await ", "yield", "with torch.no_grad():", "@property", "import gym", "from . import x", "from a.b import *", "# gyre: ignore[GYR206] x", "# gyre: ignore-file[", '"""', "'", "\\", "f'{x!r:>{y}}'",
     "match x:", "case {**y}:", "type X = int", "*a, b = c", "x: int = 3", ":=", "global q", "nonlocal q", "del a[0]", "\x00", "é", "self.opt.step()", "policy(obs)", "print(x, end='')"]
)  # fmt: skip


@given(st.one_of(st.lists(PIECES, max_size=25).map("".join), st.lists(PIECES, max_size=25).map("\n".join), st.text(max_size=80)))
@settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_any_text_ends_in_findings_or_gyr001(run, text):
    """Any text file, however odd, is findings or GYR001, never a traceback."""
    Path("any.py").write_bytes(text.encode("utf-8", "surrogatepass"))
    judged(lint(run))
