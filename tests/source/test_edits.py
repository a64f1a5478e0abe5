"""Fixes: the right place, safe and unsafe apart, and not a byte changed outside."""

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gyrecheck.model.errors import GyreError
from gyrecheck.model.finding import Evidence, Finding, Severity
from gyrecheck.model.fix import Fix, Replacement
from gyrecheck.source.edits import plan_fixes
from gyrecheck.source.file_text import FileContext
from gyrecheck.source.text_edit import apply_fixes, unified_diff, write_source


def found(code, line, column=0, *, because=(), path="a.py"):
    return Finding(code, "n", Severity.ERROR, "m", path, line, column, evidence=tuple(Evidence(path, at) for at in because))


def fixed(text, *findings, context=None, path="a.py"):
    """The text after all fixes, and whether each is safe."""
    source = text if isinstance(text, bytes) else text.encode()
    planned = plan_fixes(path, source, findings, context)
    fixes = [fix for f in planned for fix in f.fixes]
    edited = apply_fixes(source, fixes)
    assert edited.made == tuple(fixes)
    return (edited.source if isinstance(text, bytes) else edited.source.decode()), [f.safe for f in fixes]


SAMPLER = FileContext(samplers={"act", "Worker.act"})


def test_a_guard_on_a_sampling_function():
    """The decorator goes right above `def`, below the others, with the function's indentation; torch is called as the file calls it."""
    text = "import torch as th\n\nclass Worker:\n    @staticmethod\n    def act(p, obs):\n        return p(obs)\n"
    after = text.replace("    def act", "    @th.no_grad()\n    def act")
    assert fixed(text, found("GYR103", 6), context=SAMPLER) == (after, [True])


@pytest.mark.parametrize(
    ("head", "new_head", "call"),
    [
        ("import torch\n", "import torch\n", "@torch.no_grad()"),
        ("import torch.nn as nn\n", "import torch.nn as nn\nimport torch\n", "@torch.no_grad()"),
        ("import torch.nn\n", "import torch.nn\n", "@torch.no_grad()"),
        ("from torch import nn, no_grad as quiet\n", "from torch import nn, no_grad as quiet\n", "@quiet()"),
        ("from __future__ import annotations\n", "from __future__ import annotations\nimport torch\n", "@torch.no_grad()"),
        ('"""Doc\nstring."""\n', '"""Doc\nstring."""\nimport torch\n', "@torch.no_grad()"),
        ("#!/usr/bin/env python\n# comment\n", "#!/usr/bin/env python\n# comment\nimport torch\n", "@torch.no_grad()"),
        (
            "try:\n    import torch\nexcept ImportError:\n    pass\n",
            "import torch\ntry:\n    import torch\nexcept ImportError:\n    pass\n",
            "@torch.no_grad()",
        ),
    ],
)
def test_the_import_is_handled(head, new_head, call):
    """The module is imported when the file cannot name it, below what must stay first."""
    text, safe = fixed(head + "def act(p, obs):\n    return p(obs)\n", found("GYR103", head.count("\n") + 2), context=SAMPLER)
    assert text == f"{new_head}{call}\ndef act(p, obs):\n    return p(obs)\n"
    assert safe == [True]


def test_two_findings_of_one_function_are_one_guard():
    """Equal replacements are made once."""
    text = "import torch\ndef act(p, q, obs):\n    v = q(obs)\n    return p(obs), v\n"
    after, _ = fixed(text, found("GYR103", 3), found("GYR103", 4), context=SAMPLER)
    assert after.count("@torch.no_grad()") == 1


def test_the_guard_goes_to_the_sampling_caller_when_the_helper_is_shared():
    """A helper that a trainer may call too is left alone; the sampler on the chain gets the guard."""
    text = "import torch\ndef value(c, o):\n    return c(o)\ndef act(c, env):\n    value(c, env.reset())\n"
    after, safe = fixed(text, found("GYR103", 3, because=(5,)), context=SAMPLER)
    assert after == text.replace("def act", "@torch.no_grad()\ndef act")
    assert safe == [True]


@pytest.mark.parametrize(
    "body",
    [
        "async def act(p):\n    return p(1)\n",
        "def act(p):\n    p(1).backward()\n",
        "@torch.inference_mode()\n@torch.no_grad()\ndef act(p):\n    return p(1)\n",
    ],
)
def test_no_guard_where_it_would_do_nothing_or_harm(body):
    """A coroutine ends before its body runs, a backward pass needs its graph, a guarded function has it already."""
    text = f"import torch\n{body}"
    assert fixed(text, found("GYR103", text.count("\n")), context=SAMPLER) == (text, [])


def test_a_guard_on_a_function_of_unknown_duty_is_unsafe():
    """Without the whole program's word that the function only samples, the fix waits to be asked for; so with a generator."""
    text = "import torch\ndef act(p):\n    return p(1)\n"
    assert fixed(text, found("GYR103", 3))[1] == [False]
    assert fixed("import torch\ndef act(p):\n    yield p(1)\n", found("GYR103", 3), context=SAMPLER)[1] == [False]


@pytest.mark.parametrize(
    ("text", "column", "after", "safe"),
    [
        ("import gym\nx = 1\n", 8, "x = 1\n", True),
        ("import gym  # registers\nx = 1\n", 8, "x = 1\n", False),
        ("import os, gym, re\nos, re\n", 12, "import os, re\nos, re\n", True),
        ("import os, gym\nos\n", 12, "import os\nos\n", True),
        ("import gym as g; import os\nos\n", 8, "import os\nos\n", True),
        ("import os; import gym\nos\n", 19, "import os\nos\n", True),
        ("from env import make\nx = 1\n", 17, "x = 1\n", True),
        ("from env import (\n    make,\n)\nx = 1\n", 1, "x = 1\n", True),
        ("import gym", 8, "", True),
        ("if x:\n    import gym\ny = 1\n", 12, "if x:\n    pass\ny = 1\n", True),
        ("def f(): import gym\n", 17, "def f(): pass\n", True),
    ],
)
def test_an_unused_import_goes(text, column, after, safe):
    """Only the name goes, with its comma; a block is never left empty; a comment beside it makes it unsafe."""
    line = text[: text.index("gym" if "gym" in text else "make")].count("\n") + 1
    if column == 1:
        line = 1
    assert fixed(text, found("GYR201", line, column)) == (after, [safe])


@pytest.mark.parametrize(
    "text",
    [
        "import gym\nenv = gym.make('x')\n",
        "import gym\n__all__ = ['gym']\n",
        "import gym\ndef f(env: 'gym.Env'): ...\n",
        "try:\n    import gym\nexcept ImportError:\n    gym = None\n",
        "from gym import *\n",
    ],
)
def test_a_used_import_stays(text):
    """Code, `__all__`, an annotation in quotes, an optional import and a star import are not removed."""
    line = 2 if text.startswith("try") else 1
    assert fixed(text, found("GYR201", line)) == (text, [])


def test_prose_is_no_use():
    """A docstring or a message that names the package does not keep its import."""
    text = 'import gym\ndef f():\n    """gym"""\n    raise ValueError("no gym here")\n'
    assert fixed(text, found("GYR201", 1, 8))[0] == text.replace("import gym\n", "")


def test_a_name_that_others_take_from_here_stays():
    """An import that another module relies on is no unused one; in a package's `__init__` removal is unsafe."""
    assert fixed("import gym\n", found("GYR201", 1, 8), context=FileContext(exported={"gym"}))[1] == []
    assert fixed("import gym\n", found("GYR201", 1, 8, path="p/__init__.py"), path="p/__init__.py")[1] == [False]


def test_a_plain_import_beside_a_used_one_may_register():
    """`import pybullet_envs` in a file that makes environments may be there for its effect: unsafe."""
    text = "import gym\nimport pybullet_envs\ngym.make('x')\n"
    assert fixed(text, found("GYR201", 1, 8), found("GYR201", 2, 8)) == (text.replace("import pybullet_envs\n", ""), [False])


ORIGINS = FileContext(
    module="agent.train",
    origins={"agent.api.make": "agent.policy.make", "agent.api.old": "lib.deep.new", "agent.make": "agent.policy.make"},
)


@pytest.mark.parametrize(
    ("text", "column", "after"),
    [
        ("from agent.api import make\nmake()\n", 23, "from agent.policy import make\nmake()\n"),
        ("from .api import make\nmake()\n", 18, "from .policy import make\nmake()\n"),
        ("from agent.api import old\nold()\n", 23, "from lib.deep import new as old\nold()\n"),
        ("from agent.api import old as o\no()\n", 23, "from lib.deep import new as o\no()\n"),
        (
            "from agent.api import other, make\nmake(other)\n",
            30,
            "from agent.policy import make\nfrom agent.api import other\nmake(other)\n",
        ),
        ("from agent import make\nmake()\n", 19, "from agent.policy import make\nmake()\n"),
    ],
)
def test_an_import_is_taken_from_where_it_is_defined(text, column, after):
    """The defining module replaces the one that only passes the name on; dots stay dots; the bound name stays. Never safe."""
    assert fixed(text, found("GYR201", 1, column), context=ORIGINS) == (after, [False])


@pytest.mark.parametrize(
    ("text", "line", "because", "after"),
    [
        ("for b in x:\n    l.backward()\n    opt.step()\n", 3, (), "for b in x:\n    l.backward()\n    opt.step()\n    opt.zero_grad()\n"),
        ("self.o.step()  # one\ny()\nself.o.step()\n", 3, (1,), "self.o.step()  # one\nself.o.zero_grad()\ny()\nself.o.step()\n"),
        ("def f():\n\topt.step()", 2, (), "def f():\n\topt.step()\n\topt.zero_grad()"),
        ("opt.zero_grad()\nscaler.step(opt)\n", 2, (), "opt.zero_grad()\nscaler.step(opt)\nopt.zero_grad()\n"),
    ],
)
def test_gradients_are_cleared_after_the_first_step(text, line, because, after):
    """The call goes on its own line behind the step that the evidence names, else behind the finding's; never safe."""
    assert fixed(text, found("GYR206", line, because=because)) == (after, [False])


@pytest.mark.parametrize("text", ["opt.step(closure)\n", "x.step(opt)\n", "if a: opt.step()\n", "opt.step(); y()\n"])
def test_no_call_where_it_is_not_known_what_steps(text):
    """A closure, an unknown wrapper, and a step that shares its line are left to a person."""
    assert fixed(text, found("GYR206", 1)) == (text, [])


@pytest.mark.parametrize(
    ("encoding", "head"),
    [("utf-8", ""), ("utf-8-sig", ""), ("latin-1", "# -*- coding: latin-1 -*-\n"), ("utf-8", "# vim: set fileencoding=utf-8 :\n")],
)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_every_byte_outside_the_edit_stays(encoding, head, end):
    """BOM, coding cookie, CRLF, tabs, trailing blanks, comments and form survive; the inserted line has the file's line end."""
    text = head + "import torch  \n\n\ndef  act ( p ) :  # é\n\tx = p( 1 );\n\treturn   x\n\n\n  # the end"
    source = text.replace("\n", end).encode(encoding)
    after, _ = fixed(source, found("GYR103", head.count("\n") + 5), context=SAMPLER)
    assert after == source.replace(b"def  act", b"@torch.no_grad()" + end.encode() + b"def  act")


@pytest.mark.parametrize(
    "source",
    [
        b"x = '\xff'\nimport gym\n",
        b"import gym\rx = 1\r",
        b"import gym\x00\n",
        b"# coding: nope\nimport gym\n",
        b"import gym\nx = (\n",
        b"import gym\n" + b"(" * 4000 + b")" * 4000,
    ],
)
def test_a_file_that_cannot_be_edited_exactly_is_left(source):
    """Not decodable, bare carriage returns, NUL, unknown encoding, no Python, nested too deeply: no fix and no traceback."""
    planned = plan_fixes("a.py", source, [found("GYR201", 1, 8)])
    assert all(not f.fixes for f in planned)
    assert apply_fixes(source, [Fix("t", safe=True, replacements=(Replacement(1, 1, 1, 7, ""),))]).source == source


def test_overlapping_fixes_wait_for_the_next_run():
    """The first is made, the second is left and said so; a fix is never made by half."""
    one = Fix("one", safe=True, replacements=(Replacement(1, 1, 1, 3, "ab"),))
    two = Fix("two", safe=True, replacements=(Replacement(2, 1, 2, 2, "q"), Replacement(1, 2, 1, 4, "")))
    edited = apply_fixes(b"xyz = 1\np = 2\n", [one, two])
    assert (edited.source, edited.made, edited.left) == (b"abz = 1\np = 2\n", (one,), (two,))


def test_a_fix_that_breaks_the_file_is_not_made():
    """The result is parsed before it is handed back."""
    fix = Fix("t", safe=True, replacements=(Replacement(1, 1, 1, 1, "("),))
    edited = apply_fixes(b"x = 1\n", [fix])
    assert (edited.source, edited.left) == (b"x = 1\n", (fix,))


@pytest.mark.parametrize(
    "source", [b"import gym\r\nx = 1\r\n", b"\xef\xbb\xbfimport gym\nx = 1", b"# coding: latin-1\nimport gym\nx = '\xe9'\n"]
)
def test_the_diff_is_a_patch(source, tmp_path):
    """`patch` turns the old bytes into the new ones, also without a final newline and with CRLF."""
    line = 2 if b"coding" in source else 1
    after, _ = fixed(source, found("GYR201", line, 8))
    assert unified_diff("a.py", source, source) == ""
    diff = unified_diff("sub/a.py", source, after)
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "a.py").write_bytes(source)
    encoding = "latin-1" if b"latin" in source else "utf-8"
    subprocess.run(["git", "apply", "-"], cwd=tmp_path, input=diff.encode(encoding), check=True)
    assert (tmp_path / "sub" / "a.py").read_bytes() == after


def test_a_file_that_changed_meanwhile_is_not_overwritten(tmp_path):
    """Between reading and writing somebody saved the file: their bytes stay."""
    path = tmp_path / "a.py"
    path.write_bytes(b"new")
    with pytest.raises(GyreError, match="changed while it was checked"):
        write_source(path, b"old", b"fixed")
    write_source(path, b"new", b"fixed")
    assert path.read_bytes() == b"fixed"


def test_libcst_is_not_imported_without_a_finding_that_has_a_fix():
    """Findings without a form of mending, hidden ones and baselined ones do not cost the import."""
    code = (
        "import sys\nfrom dataclasses import replace\n"
        "from gyrecheck.source.edits import plan_fixes\nfrom gyrecheck.model.finding import Finding, Severity\n"
        "f = Finding('GYR301', 'n', Severity.NOTE, 'm', 'a.py', 1)\n"
        "g = Finding('GYR201', 'n', Severity.NOTE, 'm', 'a.py', 1, suppressed='why')\n"
        "plan_fixes('a.py', b'import gym\\n', [f, g, replace(g, suppressed='', baselined=True)])\n"
        "assert 'libcst' not in sys.modules\n"
        "plan_fixes('a.py', b'import gym\\n', [replace(g, suppressed='')])\n"
        "assert 'libcst' in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@given(st.lists(st.tuples(st.integers(1, 4), st.integers(1, 8), st.integers(0, 5), st.sampled_from(["", "q", "é"])), max_size=4))
def test_any_set_of_fixes_is_made_whole_or_left(cuts):
    """Every fix is either made or left, and what is made is exactly its replacement on the original text."""
    source = "aaaa = 1\nbbbb = 2\ncccc = 3\n"
    fixes = [
        Fix(str(n), safe=True, replacements=(Replacement(line, column, line, min(column + width, 9), new),))
        for n, (line, column, width, new) in enumerate(cuts)
    ]
    edited = apply_fixes(source.encode(), fixes)
    assert sorted(f.title for f in (*edited.made, *edited.left)) == sorted(f.title for f in fixes)
    if len(edited.made) == 1:
        (r,) = edited.made[0].replacements
        start = min((r.line - 1) * 9 + r.column - 1, len(source))
        end = min((r.line - 1) * 9 + r.end_column - 1, len(source))
        assert edited.source.decode() == source[:start] + r.text + source[end:]
