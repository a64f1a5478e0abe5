"""Counter shards: whole under every death, apart after every kind of fork, absent without harm."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from gyrecheck.hook.runtime import FOLDER, RUN_ID
from gyrecheck.stream.shards import read_run

ROOT = str(Path(__file__).resolve().parents[2])
COUNTING = """
import os, sys
from gyrecheck.hook import sampling

@sampling
def rollout():
    pass

said = 0
while True:
    rollout()
    said += 1
    os.write(1, b"%d\\n" % said)
"""


def environment(folder: Path) -> dict[str, str]:
    return {**os.environ, FOLDER: str(folder), RUN_ID: "r1", "PYTHONPATH": ROOT}


def run(text: str, folder: Path, **more) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(text)],
        env=environment(folder),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        **more,
    )


def kill_once(folder: Path, delay: float) -> None:
    """Kill a counting program after `delay` of counting; no acknowledged call may be missing."""
    folder.mkdir()
    child = subprocess.Popen([sys.executable, "-c", COUNTING], env=environment(folder), stdout=subprocess.PIPE, bufsize=0)
    assert child.stdout is not None
    first = child.stdout.readline()
    time.sleep(delay)
    child.send_signal(signal.SIGKILL)
    rest = child.stdout.read()
    child.stdout.close()
    child.wait()
    said = [int(word) for word in (first + rest).split(b"\n")[:-1]]
    found = read_run(folder)
    assert found is not None
    assert not found.problems
    assert said[-1] <= found.calls("S") <= said[-1] + 1


@pytest.mark.parametrize("delay", [0.0, 0.001, 0.002, 0.003, 0.005, 0.008, 0.013, 0.02, 0.03, 0.04, 0.05, 0.06])
def test_a_kill_loses_no_acknowledged_count(tmp_path, delay):
    """Killed at a dozen moments, the shard is readable and holds every call that was acknowledged before."""
    kill_once(tmp_path / "run", delay)


@pytest.mark.soak
def test_three_hundred_kills(tmp_path):
    """The same, three hundred times at moments spread over 60 ms."""
    for number in range(300):
        kill_once(tmp_path / str(number), (number * 37 % 300) / 5000)


def test_a_fork_counts_into_a_file_of_its_own(tmp_path):
    """After a fork the child starts at 0 in its own shard, and wrappers made before the fork count there."""
    done = run(
        """
        import os
        from gyrecheck.hook import sampling
        @sampling
        def rollout(): pass
        for _ in range(5): rollout()
        if not os.fork():
            for _ in range(3): rollout()
            os._exit(0)
        os.wait()
        rollout()
        """,
        tmp_path,
    )
    assert done.returncode == 0, done.stderr
    found = read_run(tmp_path)
    assert found is not None
    assert sorted(p.calls("S") for p in found.processes) == [3, 6]
    assert len({p.pid for p in found.processes}) == 2


def test_forks_of_forks_and_events(tmp_path):
    """Grandchildren have shards and event files of their own."""
    done = run(
        """
        import os
        from gyrecheck.hook import publish
        publish(1)
        if not os.fork():
            publish(2)
            if not os.fork():
                publish(3)
                os._exit(0)
            os.wait()
            os._exit(0)
        os.wait()
        """,
        tmp_path,
    )
    assert done.returncode == 0, done.stderr
    found = read_run(tmp_path)
    assert found is not None
    assert len(found.processes) == 3
    by_pid = {e.pid: e.number("version") for e in found.of("publish")}
    assert sorted(by_pid.values()) == [1, 2, 3]
    assert set(by_pid) == {p.pid for p in found.processes}


@pytest.mark.parametrize("method", ["spawn", "forkserver", "fork"])
def test_worker_processes_count(tmp_path, method):
    """Workers of multiprocessing count, whatever starts them, and also when they end without a clean exit."""
    script = tmp_path / "program.py"
    script.write_text(
        textwrap.dedent(f"""
        import multiprocessing, os
        from gyrecheck.hook import sampling

        @sampling
        def rollout(): pass

        def work(number):
            for _ in range(number): rollout()
            os._exit(0)

        if __name__ == "__main__":
            context = multiprocessing.get_context("{method}")
            workers = [context.Process(target=work, args=(n,)) for n in (2, 3)]
            for worker in workers: worker.start()
            for worker in workers: worker.join()
        """)
    )
    folder = tmp_path / "run"
    folder.mkdir()
    done = subprocess.run([sys.executable, str(script)], env=environment(folder), capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    found = read_run(folder)
    assert found is not None
    assert sorted(p.calls("S") for p in found.processes if p.calls("S")) == [2, 3]


def test_a_folder_that_cannot_be_written_costs_one_line(tmp_path):
    """Counting goes on in memory, one line on stderr says why, and the program's own result is the same."""
    done = run(
        """
        from gyrecheck.hook import sampling, ledger, publish
        @sampling
        def rollout(): return 7
        print(rollout()); ledger(sampled=1); publish(1)
        """,
        Path("/proc/version"),
    )
    assert (done.returncode, done.stdout) == (0, "7\n")
    assert done.stderr.count("\n") == 1
    assert "not recorded" in done.stderr


def test_a_full_disk_is_said_before_the_first_store(tmp_path):
    """Where the file cannot be allocated whole there is no shard at all, no half file, and no signal at a later store."""
    done = run(
        """
        import os
        def full(*_): raise OSError(28, "No space left on device")
        os.posix_fallocate = full
        from gyrecheck.hook import sampling
        @sampling
        def rollout(): return 7
        print(sum(rollout() for _ in range(1000)))
        """,
        tmp_path,
    )
    assert (done.returncode, done.stdout) == (0, "7000\n")
    assert "No space left" in done.stderr
    assert not list(tmp_path.iterdir())


def test_a_limit_on_file_size_is_such_a_disk(tmp_path):
    """The kernel's own refusal (file size limit of 4 KiB) has the same effect."""
    done = run(
        """
        import resource
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
        from gyrecheck.hook import sampling
        @sampling
        def rollout(): return 7
        print(rollout())
        """,
        tmp_path,
    )
    assert (done.returncode, done.stdout) == (0, "7\n")
    assert not list(tmp_path.glob("*.shard"))


def test_a_folder_that_vanishes_while_counting_is_no_harm(tmp_path):
    """The run folder removed under a running program: it goes on, and ends as it would."""
    done = run(
        f"""
        import shutil
        from gyrecheck.hook import sampling, publish
        @sampling
        def rollout(): return 1
        rollout()
        shutil.rmtree({str(tmp_path / "run")!r})
        publish(1)
        print(sum(rollout() for _ in range(5000)))
        """,
        _made(tmp_path / "run"),
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "5000\n", "")


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


def test_more_entries_than_places_still_count(tmp_path):
    """With 400 counted entries for 250 places the total is still exact: the rest count into one overflow cell."""
    done = run(
        """
        from gyrecheck.hook import sampling
        for number in range(400):
            sampling(f"entry{number}")(lambda: None)()
        """,
        tmp_path,
    )
    assert done.returncode == 0, done.stderr
    found = read_run(tmp_path)
    assert found is not None
    assert found.calls("S") == 400


@pytest.mark.soak
def test_torch_workers_and_ranks_are_hooked(tmp_path):
    """Workers of torch.multiprocessing (spawn) and ranks started the way torchrun starts them each have a shard with their own steps."""
    pytest.importorskip("torch")
    script = tmp_path / "program.py"
    script.write_text(
        textwrap.dedent("""
        import os, subprocess, sys
        import torch
        import torch.multiprocessing as mp

        def work(steps):
            net = torch.nn.Linear(2, 1)
            opt = torch.optim.SGD(net.parameters(), lr=0.1)
            for _ in range(steps):
                opt.zero_grad()
                net(torch.ones(2)).sum().backward()
                opt.step()

        if __name__ == "__main__":
            if "RANK" in os.environ:
                work(5 + int(os.environ["RANK"]))
                sys.exit(0)
            context = mp.get_context("spawn")
            workers = [context.Process(target=work, args=(n,)) for n in (2, 3)]
            for worker in workers: worker.start()
            for worker in workers: worker.join()
            ranks = [subprocess.Popen([sys.executable, __file__], env={**os.environ, "RANK": str(r)}) for r in range(2)]
            sys.exit(max(rank.wait() for rank in ranks))
        """)
    )
    from gyrecheck.hook.program import Program, environment_for, write_table
    from gyrecheck.rulebook.hook_table import compiled

    folder = _made(tmp_path / "run")
    write_table(folder, compiled())
    outcome = Program([sys.executable, str(script)], environment_for(folder, "r1"), folder, quiet=True).run()
    assert outcome.code == 0, (folder / "stderr.log").read_text()
    found = read_run(folder)
    assert found is not None
    assert sorted(p.cells["optimizer_steps"] for p in found.processes) == [0, 2, 3, 5, 6]
