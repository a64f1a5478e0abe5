"""What the hook costs a program before it has counted anything."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = str(Path(__file__).resolve().parents[2])


def loaded_by(statement: str) -> set[str]:
    """The modules that a statement loads beyond a bare interpreter's."""
    text = f"import sys; sys.path.insert(0, {ROOT!r}); before = set(sys.modules); {statement}; print(*sorted(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-I", "-c", text], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_the_hook_loads_the_standard_library_and_the_lowest_floors_only():
    """No third-party module, and of gyrecheck nothing but hook and model."""
    modules = loaded_by("import gyrecheck.hook")
    foreign = {name.partition(".")[0] for name in modules} - set(sys.stdlib_module_names) - {"gyrecheck"}
    assert not foreign
    ours = {name for name in modules if name.startswith("gyrecheck.")}
    assert all(name.startswith(("gyrecheck.hook", "gyrecheck.model")) for name in ours)


def test_the_hook_loads_none_of_the_dear_modules():
    """Modules of the standard library that cost more than the hook itself are left to the program."""
    dear = {"typing", "inspect", "logging", "json", "socket", "dataclasses", "subprocess", "pathlib", "enum"}
    assert not loaded_by("import gyrecheck.hook") & dear


def test_starting_a_process_loads_nothing_but_itself(tmp_path):
    """A hooked process that imports no known library has loaded our launcher and its two modules, and nothing of the standard library."""
    from gyrecheck.hook.program import environment_for, write_table
    from gyrecheck.rulebook.hook_table import compiled

    write_table(tmp_path, compiled())
    env = environment_for(tmp_path, "r1")
    show = "import sys; print(*sorted(sys.modules))"
    bare = {"PATH": env["PATH"], "PYTHONPATH": ROOT}
    runs = [subprocess.run([sys.executable, "-c", show], capture_output=True, text=True, check=True, env=e).stdout for e in (bare, env)]
    before, after = (set(out.split()) for out in runs)
    assert after - before <= {"__future__", "sitecustomize", "gyrecheck", "gyrecheck.hook", "gyrecheck.hook.launch"}
    assert (tmp_path / "processes.jsonl").is_file()


def test_the_line_of_a_process_is_json(tmp_path):
    """A process signs with the words it was started with: quotes, line ends, letters of any script and bytes that are no text."""
    words = ['a"b\\c', "line\nend", "\u00e9\U0001f600", "\udcff"]
    from gyrecheck.hook.launch import _quoted

    assert [json.loads(_quoted(word)) for word in words] == words
