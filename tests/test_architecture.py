"""Promises of the house: what each entry loads, seen in a fresh interpreter, since a static contract cannot see a deferred import."""

import json
import subprocess
import sys

import pytest

HEAVY = ("torch", "pandas", "matplotlib", "libcst", "textual", "numpy", "pyarrow", "gymnasium", "IPython")


def loaded_after(statement: str) -> set[str]:
    program = f"import sys, json\ntry:\n    {statement}\nexcept SystemExit:\n    pass\nprint('\\n' + json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout.splitlines()[-1]))


@pytest.mark.parametrize(
    "statement",
    [
        "import gyrecheck.cli",
        "import gyrecheck.cli as c; sys.argv[1:] = ['--help']; c.main()",
        "import gyrecheck.cli as c; sys.argv[1:] = ['lint', '--help']; c.main()",
        "import gyrecheck.cli as c; sys.argv[1:] = ['ledger', '--help']; c.main()",
        "import gyrecheck.cli as c; sys.argv[1:] = ['handoff', '--help']; c.main()",
        "import gyrecheck.cli as c; sys.argv[1:] = ['run', '--help']; c.main()",
        "import gyrecheck.cli as c; sys.argv[1:] = ['rules']; c.main()",
    ],
)
def test_help_and_start_load_nothing_heavy(statement):
    """No command pays for another's libraries: asking for help, or listing rules, loads none of the heavy ones."""
    modules = loaded_after(statement)
    assert not [name for name in HEAVY if name in modules]


def test_the_hook_loads_the_standard_library_and_two_floors():
    """`import gyrecheck.hook` brings nothing that is neither standard library nor model, rulebook or hook."""
    bare = loaded_after("pass")
    extra = {name for name in loaded_after("import gyrecheck.hook") - bare if name.split(".")[0] not in sys.stdlib_module_names}
    strangers = {
        name for name in extra if not name.startswith(("gyrecheck.hook", "gyrecheck.model", "gyrecheck.rulebook")) and name != "gyrecheck"
    }
    assert not strangers


def test_the_reference_loop_knows_nothing_of_gyrecheck():
    """The loop is ordinary RL code: importing it loads no module of gyrecheck."""
    modules = loaded_after("import reference_loop.sampler, reference_loop.trainer")
    assert not [name for name in modules if name.split(".")[0] == "gyrecheck"]
