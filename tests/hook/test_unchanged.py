"""Programs of every kind behave hooked as they do unhooked: exit code, both streams, and the files they write.

A package of the test's own stands for the library that the hook knows by name, so that everything is wrapped and counted without the cost
of a real one; the soak test does the same with the real library.
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path

import pytest

from gyrecheck.hook.program import Program, environment_for, write_table
from gyrecheck.model.live import HookedRun
from gyrecheck.rulebook.hook_table import compiled
from gyrecheck.stream.shards import read_run

ROOT = str(Path(__file__).resolve().parents[2])
LIBRARY = "class Env:\n    pass\n\n\nclass vector:\n    class VectorEnv:\n        pass\n"
PRELUDE = """
import asyncio, atexit, multiprocessing, os, signal, subprocess, sys, threading
import gymnasium

class Ring(gymnasium.Env):
    def __init__(self):
        self.at = 0

    def reset(self):
        self.at = 0
        return self.at

    def step(self, action):
        self.at = (self.at + action) % 7
        return self.at, float(self.at == 0), False, False, {}

def rollout(steps):
    env = Ring()
    env.reset()
    return sum(env.step(1)[1] for _ in range(steps))
"""
PROGRAMS = {
    "plain": ("print(rollout(70)); open('result.txt', 'w').write('70')", 70),
    "fork": ("if not os.fork():\n    rollout(3); os._exit(5)\nprint(os.waitstatus_to_exitcode(os.wait()[1]), rollout(4))", 7),
    "fork of a fork": ("for _ in range(2):\n    if os.fork():\n        os.wait(); break\nrollout(2); print(os.getpid() > 0, flush=True)", None),
    "threads": (
        ("def work(): rollout(500)\nts = [threading.Thread(target=work) for _ in range(4)]\n[t.start() for t in ts]; [t.join() for t in ts]\n"
        "print(threading.active_count())"), 2000,
    ),
    "asyncio": (
        ("async def work(n):\n    await asyncio.sleep(0)\n    return rollout(n)\n"
        "async def main():\n    print(await asyncio.gather(work(7), work(14)))\nasyncio.run(main())"), 21,
    ),
    "os._exit": ("rollout(5); atexit.register(print, 'never'); open('result.txt', 'w').write('x'); os._exit(4)", 5),
    "sys.exit": ("rollout(5); atexit.register(print, 'last'); sys.exit(3)", 5),
    "sys.exit with a sentence": ("rollout(5); sys.exit('no data')", 5),
    "an exception": ("rollout(5); raise ValueError('x')", 5),
    "KeyboardInterrupt": ("rollout(5); os.kill(os.getpid(), signal.SIGINT); rollout(5)", None),
    "SIGTERM": ("rollout(5); os.kill(os.getpid(), signal.SIGTERM)", 5),
    "SIGKILL": ("rollout(5); sys.stdout.flush(); os.kill(os.getpid(), signal.SIGKILL)", 5),
    "a handler of its own": ("signal.signal(signal.SIGTERM, lambda *_: sys.exit(21)); rollout(5); os.kill(os.getpid(), signal.SIGTERM)", 5),
    "exec": ("rollout(5); sys.stdout.flush(); os.execv(sys.executable, [sys.executable, '-c', 'import sys; sys.exit(6)'])", 5),
    "children": (
        ("if 'RANK' in os.environ:\n    print(rollout(7 * int(os.environ['RANK'])), flush=True); sys.exit(int(os.environ['RANK']))\n"
        "codes = [subprocess.run([sys.executable, __file__], env={**os.environ, 'RANK': str(n)}).returncode for n in (1, 2)]\nsys.exit(max(codes))"),
        21,
    ),
    "an isolated child": ("print(rollout(7), flush=True); subprocess.run([sys.executable, '-I', '-c', 'print(5)'], check=True)", 7),
    "a bare environment": ("print(rollout(7), flush=True); subprocess.run([sys.executable, '-c', 'print(5)'], env={}, check=True)", 7),
    "closed streams": ("rollout(5); sys.stdout.close(); sys.stderr.close(); os.close(2)", 5),
    "another folder": ("os.makedirs('deep', exist_ok=True); os.chdir('deep'); open('x', 'w').write(str(rollout(7)))", 7),
    "all descriptors closed": ("rollout(5); os.closerange(3, 256); print(rollout(7))", 12),
    "frozen modules": ("import copy, pickle\nenv = copy.deepcopy(Ring()); env.step(2)\nprint(pickle.loads(pickle.dumps(env)).at, Ring.step.__name__)", 1),
}  # fmt: skip
POOL = """
if __name__ == "__main__":
    with multiprocessing.get_context({method!r}).Pool(2) as pool:
        print(pool.map(rollout, [7, 14, 21]))
"""


@dataclass
class Ended:
    """How a program ended, and what it left."""

    code: int
    out: bytes
    err: bytes
    files: dict[str, bytes]


def files_of(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file() and "__pycache__" not in p.parts}


def laid_out(folder: Path, text: str, more: dict[str, str] | None = None) -> dict[str, str]:
    """The program and its library in `folder`; the environment to start it with."""
    for name, content in {"train.py": textwrap.dedent(text), "lib/gymnasium.py": LIBRARY, **(more or {})}.items():
        path = folder / "work" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    paths = os.pathsep.join([str(folder / "work/lib"), ROOT])
    return {"PATH": os.environ["PATH"], "HOME": str(folder), "PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1"}


def alone(folder: Path, words: list[str], env: dict[str, str]) -> Ended:
    work = folder / "work"
    done = subprocess.run([sys.executable, *words], cwd=work, env=env, capture_output=True, timeout=60, check=False)
    return Ended(128 - done.returncode if done.returncode < 0 else done.returncode, done.stdout, done.stderr, files_of(work))


def hooked(folder: Path, words: list[str], env: dict[str, str], run: Path, monkeypatch) -> Ended:
    """The same as `gyrecheck run` starts it, its counters and output in `run`, which holds the table already."""
    work = folder / "work"
    monkeypatch.chdir(work)
    logs = folder / "logs"
    logs.mkdir()
    code = Program([sys.executable, *words], environment_for(run, "r1", env), logs, quiet=True).run().code
    return Ended(code, (logs / "stdout.log").read_bytes(), (logs / "stderr.log").read_bytes(), files_of(work))


@pytest.fixture
def pair(tmp_path, monkeypatch):
    """Runs a program both ways; what it did without us, what it did with us, and the run."""

    def both(text: str, words: tuple[str, ...] = ("train.py",), *, more: dict[str, str] | None = None) -> tuple[Ended, Ended, HookedRun]:
        folder = tmp_path / "place"
        env = laid_out(folder, text, more)
        bare = alone(folder, list(words), env)
        shutil.rmtree(folder)
        laid_out(folder, text, more)
        run = tmp_path / "run"
        run.mkdir()
        write_table(run, compiled())
        with_us = hooked(folder, list(words), env, run, monkeypatch)
        return bare, with_us, read_run(run) or HookedRun(str(run))

    return both


@pytest.mark.parametrize("kind", PROGRAMS)
def test_a_program_does_what_it_does_without_us(pair, kind):
    """Exit code, streams and files are the same; each env step was counted, whatever ended the process."""
    text, steps = PROGRAMS[kind]
    bare, with_us, run = pair(PRELUDE + text)
    assert with_us == bare
    assert not run.problems
    if steps is not None:
        assert run.calls("S") == steps


@pytest.mark.parametrize("method", ["spawn", "fork", "forkserver"])
def test_pools_do_what_they_do_without_us(pair, method):
    """Workers of a pool, whatever starts them, give the same results, and their 42 steps are counted in shards of their own."""
    bare, with_us, run = pair(PRELUDE + POOL.format(method=method))
    assert with_us == bare
    assert bare.code == 0
    assert run.calls("S") == 42


@pytest.mark.parametrize(
    ("words", "reached"), [(("-I", "train.py"), False), (("-S", "-c", "print(5)"), False), (("-E", "-c", "print(5)"), False), (("-B", "-O", "train.py"), True)]
)  # fmt: skip
def test_interpreter_options_are_kept(pair, words, reached):
    """Options that shut us out are no harm, others change nothing: the program ends as it does without us."""
    text = "import sys; sys.path.append('lib')\n" + PRELUDE + "print(rollout(7), __debug__, sys.flags.optimize)"
    bare, with_us, run = pair(text, words)
    assert with_us == bare
    assert bool(run.reached) is reached
    assert run.calls("S") == (7 if reached else 0)


def test_a_sitecustomize_of_its_own_runs_once(pair):
    """The program's sitecustomize is executed once, under its name, and an error in it ends as it does without us."""
    own = "import sys\nsys.stdout.write('own %s\\n' % __name__)\n"
    bare, with_us, _ = pair(PRELUDE + "import sitecustomize; print(sitecustomize.__file__)", more={"lib/sitecustomize.py": own})
    assert with_us == bare
    assert bare.out.startswith(b"own sitecustomize\n")
    assert b"launcher" not in with_us.out


def mounted(place: Path, options: str) -> bool:
    """Whether a file system in memory of that kind could be mounted."""
    place.mkdir(parents=True)
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(place)], capture_output=True, check=False)
    return done.returncode == 0


@pytest.mark.parametrize("kib", [16, 136])
def test_a_full_disk_is_no_harm(tmp_path, monkeypatch, kib):
    """A run folder on a disk of 16 KiB has no room for a shard, one of 136 KiB none for what is told: the program does not notice."""
    text = PRELUDE + "for _ in range(30):\n    print(rollout(70))\nsys.exit(3)"
    folder, disk = tmp_path / "place", tmp_path / "disk"
    env = laid_out(folder, text)
    bare = alone(folder, ["train.py"], env)
    if not shutil.which("mount") or not mounted(disk, f"size={kib}k"):
        pytest.skip("no file system can be mounted here")
    try:
        write_table(disk, compiled())
        if kib > 100:
            (disk / "filler").write_bytes(bytes(1024 * (kib - 124)))
        with_us = hooked(folder, ["train.py"], env, disk, monkeypatch)
        found = read_run(disk)
    finally:
        subprocess.run(["umount", str(disk)], check=False)
    assert (with_us.code, with_us.out, with_us.files) == (bare.code, bare.out, bare.files)
    if kib < 100:
        assert with_us.err.count(b"\n") == 1
        assert b"not recorded" in with_us.err
    else:
        assert with_us.err == bare.err
        assert found is not None
        assert found.calls("S") == 2100


def test_a_read_only_folder_is_no_harm(tmp_path, monkeypatch):
    """A run folder on a disk that was mounted read-only after the table was written: one line on stderr, all else as without us."""
    text = PRELUDE + "print(rollout(70)); sys.exit(3)"
    folder, disk = tmp_path / "place", tmp_path / "disk"
    env = laid_out(folder, text)
    bare = alone(folder, ["train.py"], env)
    if not shutil.which("mount") or not mounted(disk, "size=1m"):
        pytest.skip("no file system can be mounted here")
    try:
        write_table(disk, compiled())
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        with_us = hooked(folder, ["train.py"], env, disk, monkeypatch)
    finally:
        subprocess.run(["umount", str(disk)], check=False)
    assert (with_us.code, with_us.out, with_us.files) == (bare.code, bare.out, bare.files)
    assert b"Read-only file system" in with_us.err
    assert with_us.err.count(b"\n") == 1


def test_a_limit_on_file_size_is_no_harm(tmp_path, monkeypatch):
    """The substitute for a full disk that needs no rights: no file of the program may pass 8 KiB, so there is no shard."""
    text = PRELUDE + "print(rollout(70)); open('result.txt', 'w').write('x' * 4000); sys.exit(3)"
    folder, run = tmp_path / "place", tmp_path / "run"
    env = laid_out(folder, text)
    bare = alone(folder, ["train.py"], env)
    run.mkdir()
    write_table(run, compiled())
    limit = f"import resource, os, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (8192, {resource.RLIM_INFINITY})); "
    words = ["-c", limit + "os.execv(sys.executable, [sys.executable, 'train.py'])"]
    with_us = hooked(folder, words, env, run, monkeypatch)
    assert (with_us.code, with_us.out, with_us.files) == (bare.code, bare.out, bare.files)
    assert not list(run.glob("*.shard"))
    assert b"not recorded" in with_us.err


REAL = """
import os, sys
import torch
import torch.multiprocessing as mp

torch.set_num_threads(1)

def work(steps):
    torch.manual_seed(0)
    net = torch.nn.Linear(2, 1)
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(steps):
        opt.zero_grad()
        net(torch.ones(2)).sum().backward()
        opt.step()
    print(steps, [float(p.detach().sum()) for p in net.parameters()], flush=True)

if __name__ == "__main__":
    work(1)
    for steps in (2, 3):
        child = mp.get_context(sys.argv[1]).Process(target=work, args=(steps,))
        child.start()
        child.join()
    sys.exit(3)
"""


@pytest.mark.soak
@pytest.mark.parametrize("method", ["spawn", "fork"])
def test_workers_of_the_real_library(pair, method):
    """torch.multiprocessing: the same weights to the last bit, the same exit code, and 1 + 2 + 3 optimizer steps in three shards."""
    pytest.importorskip("torch")
    bare, with_us, run = pair(REAL, ("train.py", method))
    assert with_us == bare
    assert bare.code == 3
    assert sorted(p.cells["optimizer_steps"] for p in run.processes if p.cells["optimizer_steps"]) == [1, 2, 3]
