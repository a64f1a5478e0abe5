"""Runs many short hooked programs quickly: one process imports the heavy library once, and each program is a fork of it.

Used to prove the samples of rules, and by the tests; `gyrecheck run` itself always starts the program as the user would.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

from gyrecheck.hook.program import write_table
from gyrecheck.hook.runtime import FOLDER, RUN_ID
from gyrecheck.model.finding import Report, State
from gyrecheck.model.live import HookedRun
from gyrecheck.rulebook.codes import Sample
from gyrecheck.rulebook.hook_table import compiled

_FORKING = """
import atexit, importlib.util, json, os, sys, types
with_torch = importlib.util.find_spec("torch")
if with_torch:
    import torch, torch.distributions, torch.optim, torch.utils.data
    torch.optim.Adam([torch.nn.Parameter(torch.zeros(1))])
for line in sys.stdin:
    ask = json.loads(line)
    pid = os.fork()
    if not pid:
        break
    _, status = os.waitpid(pid, 0)
    print(json.dumps(os.waitstatus_to_exitcode(status)), flush=True)
else:
    os._exit(0)
folder = ask["folder"]
for number, name in ((0, os.devnull), (1, folder + "/stdout.log"), (2, folder + "/stderr.log")):
    os.dup2(os.open(name, os.O_RDWR | os.O_CREAT, 0o644), number)
sys.stdin, sys.stdout, sys.stderr = os.fdopen(0), os.fdopen(1, "w"), os.fdopen(2, "w")
os.environ.update(ask["env"])
os.chdir(os.path.dirname(os.path.abspath(ask["script"])))
sys.argv = [ask["script"]]
from gyrecheck.hook import launch
launch.start(folder)
module = types.ModuleType("__main__")
module.__file__ = ask["script"]
sys.modules["__main__"] = module
code = 0
try:
    with open(ask["script"], encoding="utf-8") as file:
        exec(compile(file.read(), ask["script"], "exec"), module.__dict__)
except SystemExit as end:
    code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
except BaseException:
    code = 1
    sys.excepthook(*sys.exc_info())
atexit._run_exitfuncs()
sys.stdout.flush()
sys.stderr.flush()
os._exit(code)  # taking down an interpreter with a large library loaded costs more than the program
"""


class Forking:
    """The process that has the library loaded."""

    def __init__(self) -> None:
        env = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(Path(__file__).resolve().parents[2])}
        for name in (FOLDER, RUN_ID):
            env.pop(name, None)
        self._child = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", _FORKING], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env
        )

    def run(self, script: Path, folder: Path) -> int:
        """Run one program hooked into `folder`; its exit code as `subprocess` gives it."""
        write_table(folder, compiled())
        assert self._child.stdin is not None  # noqa: S101 - both pipes were asked for
        assert self._child.stdout is not None  # noqa: S101
        ask = {"script": str(script), "folder": str(folder), "env": {FOLDER: str(folder), RUN_ID: "sample"}}
        self._child.stdin.write(json.dumps(ask) + "\n")
        self._child.stdin.flush()
        return int(json.loads(self._child.stdout.readline()))

    def close(self) -> None:
        """End the process."""
        for pipe in (self._child.stdin, self._child.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
        self._child.wait()


@cache
def _forking() -> Forking:
    import atexit

    made = Forking()
    atexit.register(made.close)
    return made


def judge_script(script: Path, folder: Path, topology: str = "") -> tuple[int, Report]:
    """One program under the hook: its exit code, and the report of `gyrecheck run`."""
    from gyrecheck.commands.run_report import judge_hook, judge_logs, judge_printed, report_of
    from gyrecheck.stream.shards import read_run

    code = _forking().run(script.absolute(), folder)
    run = read_run(folder) or HookedRun(str(folder))
    live = judge_hook(run, topology=topology)
    logs = judge_logs(folder, run, topology=live.topology)
    return code, report_of("run", (script.name,), live, logs, judge_printed(folder, run, topology=live.topology))


def prove(sample: Sample) -> tuple[tuple[str, int], ...]:
    """The codes that a sample program shows under the hook, each with the line of its first place (0 where there is none)."""
    with tempfile.TemporaryDirectory(prefix="gyrecheck-") as place:
        folder = Path(place) / "run"
        folder.mkdir()
        script = Path(place) / (sample.file or "sample.py")
        script.write_text(sample.text.lstrip("\n"), encoding="utf-8")
        _, report = judge_script(script, folder, sample.topology.value if sample.topology else "")
        return tuple((v.code, v.first.line if v.first else 0) for v in report.verdicts if v.state is State.BROKEN)
