"""The two programs and the loop as a user starts them: each alone, both together, stopped, resumed, refused."""

from __future__ import annotations

import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from reference_loop.balance import balance
from reference_loop.config import Settings, as_arguments
from reference_loop.entry import Stop, run_sides
from reference_loop.log import EventLog
from reference_loop.loop import main
from reference_loop.sampler import Sampler
from reference_loop.trainer import Trainer

Make = Callable[..., Settings]


def run_alone(side: type[Sampler | Trainer], settings: Settings, stop: Stop | None = None) -> int:
    """Run one side here; the exit code."""
    return run_sides(lambda: (side(settings, stop or Stop()),), lambda sides: sides[0].run())


def serial(settings: Settings) -> int:
    """Run the loop in turns here; the exit code."""
    return main(["--serial", *as_arguments(settings)])


def events(settings: Settings, side: str, event: str) -> list[dict[str, str]]:
    """All lines of one event, as key and value."""
    lines = (settings.run_dir / f"{side}.log").read_text(encoding="utf-8").splitlines()
    found = [line.split(" ", 4) for line in lines]
    return [dict(re.findall(r'(\w+)=("(?:[^"\\]|\\.)*"|\S+)', parts[4] if len(parts) > 4 else "")) for parts in found if parts[3] == event]


def test_each_side_runs_alone_to_its_end(settings: Make) -> None:
    """The sampler alone fills the folder with whole records; the trainer alone then makes several updates from them (B10)."""
    alone = settings(max_age=20)
    assert run_alone(Sampler, alone) == 0
    files = sorted((alone.run_dir / "ready").iterdir())
    records = [json.loads(line) for path in files for line in path.read_bytes().splitlines()[1:-1]]
    assert len(files) >= 5
    assert sum(record["length"] for record in records) >= 600
    assert all(
        record[key] is not None for record in records for key in ("policy_version", "sample_step", "wall_clock", "episode_id", "step")
    )
    assert run_alone(Trainer, alone) == 0
    updates = events(alone, "trainer", "update_done")
    assert [line["step"] for line in updates] == [str(step + 1) for step in range(len(files))]
    assert events(alone, "trainer", "ended")[0]["reason"] == "no_more_segments"
    found = balance(alone.run_dir)
    assert found.holds
    assert len(found.taken) == len(records)


def test_neither_program_loads_the_other_sides_tools(tmp_path: Path) -> None:
    """Importing the trainer loads no environment, and importing the sampler loads nothing that updates weights (B9)."""
    code = "import sys, reference_loop.{} as m; print([n for n in ('gymnasium', 'reference_loop.ppo', 'reference_loop.env') if n in sys.modules])"
    loaded = {
        side: subprocess.run([sys.executable, "-c", code.format(side)], capture_output=True, text=True, check=True).stdout.strip()
        for side in ("trainer", "sampler")
    }
    assert loaded == {"trainer": "['reference_loop.ppo']", "sampler": "['gymnasium', 'reference_loop.env']"}


def fingerprint(run_dir: Path) -> dict[str, str]:
    """Hashes of the weights and of both ledgers."""
    files = [path for pattern in ("weights/*", "ledger/*", "journal/*") for path in sorted(run_dir.glob(pattern))]
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def test_serial_runs_repeat_bit_for_bit(settings: Make, tmp_path: Path) -> None:
    """One seed gives one run, weights and ledger to the bit; another seed gives another."""
    runs = []
    for folder, seed in (("a", 3), ("b", 3), ("c", 4)):
        assert serial(settings(run_dir=tmp_path / folder, seed=seed)) == 0
        runs.append(fingerprint(tmp_path / folder))
    assert len(runs[0]) == 6 + 1 + 2  # max_age + 2 versions, LATEST, two ledgers
    assert runs[0] == runs[1]
    assert runs[0] != runs[2]


def test_a_stopped_serial_run_goes_on_where_it_stopped(settings: Make) -> None:
    """Two halves make one run: totals go on, no id comes twice, nothing is left."""
    assert serial(settings(total_steps=300)) == 0
    assert serial(settings(total_steps=600)) == 0
    taken = events(settings(), "trainer", "take")
    assert [int(line["taken_total"]) for line in taken] == [sum(int(line["taken"]) for line in taken[: n + 1]) for n in range(len(taken))]
    resumed = events(settings(), "sampler", "resumed")
    assert int(resumed[0]["sampled_total"]) == int(taken[2]["taken_total"])
    found = balance(settings().run_dir)
    assert found.holds
    assert len(set(found.taken)) == len(found.sampled)


@pytest.mark.parametrize("layout", ["slice", "step", "arrow"])
def test_log_and_files_say_the_same(settings: Make, layout: str) -> None:
    """The totals of the two logs, and the sum of the per-take counts, are those recomputed from the files."""
    run = settings(layout=layout, fsync=True)
    assert serial(run) == 0
    found = balance(run.run_dir)
    assert found.holds
    sampled, ended = events(run, "sampler", "sampled"), events(run, "trainer", "ended")[0]
    assert int(sampled[-1]["sampled_total"]) == sum(int(line["n"]) for line in sampled) == len(found.sampled)
    assert int(ended["taken_total"]) == sum(int(line["taken"]) for line in events(run, "trainer", "take")) == len(found.taken)
    assert (ended["buffer_left"], ended["dropped_stale_total"]) == ("0", "0")


def test_the_age_limit_is_on_the_path(settings: Make) -> None:
    """Of five old segments limit 20 takes all and limit 1 takes those of ages 0 and 1: what is older is dropped and counted (A4, A6)."""
    took = {}
    for limit in (20, 1):
        run = settings(run_dir=settings().run_dir / str(limit), max_age=limit)
        assert run_alone(Sampler, run) == 0
        assert run_alone(Trainer, run) == 0
        takes = events(run, "trainer", "take")
        took[limit] = ["taken" if line["dropped_stale"] == "0" else "stale" for line in takes]
        assert all("gap_max" not in line or int(line["gap_max"]) <= limit for line in takes)
        assert balance(run.run_dir).holds
    assert took[20] == ["taken"] * 5
    assert took[1] == ["taken", "taken", "stale", "stale", "stale"]


def test_the_age_limit_in_steps(settings: Make) -> None:
    """With a limit in environment steps the same drop is made by distance in steps from the newest segment claimed."""
    run = settings(max_age=20, max_age_steps=100, batch_trajectories=40)
    assert run_alone(Sampler, run) == 0
    assert run_alone(Trainer, run) == 0
    assert sum(int(line["dropped_stale"]) for line in events(run, "trainer", "take")) > 0
    assert balance(run.run_dir).holds


def test_back_pressure_with_a_trainer_that_does_not_read(settings: Make) -> None:
    """While a trainer lives the sampler holds at the bound, says so, and a stop still ends it cleanly."""
    run = settings(max_unread=2)
    idle = Trainer(run, Stop())
    stop = Stop()
    sampler = Sampler(run, stop)
    sampler.collect()
    sampler.collect()
    signal.signal(signal.SIGALRM, lambda _number, _frame: setattr(stop, "asked", True))
    signal.setitimer(signal.ITIMER_REAL, 1.2)
    assert sampler.run() == "stopped"
    sampler.close("stopped", 0)
    idle.close("stopped", 0)
    waiting = events(run, "sampler", "waiting")
    assert [(line["reason"], line["unread"], line["max_unread"]) for line in waiting] == [("backpressure", "2", "2")]
    assert len(list((run.run_dir / "ready").iterdir())) == 2


def test_alone_the_sampler_ends_at_the_backlog(settings: Make) -> None:
    """With nobody to read the sampler goes on past the bound, and ends at the backlog's."""
    run = settings(max_backlog=3)
    assert run_alone(Sampler, run) == 0
    assert events(run, "sampler", "ended")[0]["reason"] == "backlog_full"
    assert len(list((run.run_dir / "ready").iterdir())) == 3


def test_a_second_sampler_is_refused_or_named(settings: Make, capsys: pytest.CaptureFixture[str]) -> None:
    """The same name twice is exit code 2 with a way out; another name feeds the same trainer, and all of it balances."""
    run = settings(max_age=20, max_unread=100)
    first = Sampler(run, Stop())
    assert run_alone(Sampler, run) == 2
    assert "--producer" in capsys.readouterr().err
    first.collect()
    second = settings(max_age=20, max_unread=100, producer="s1", total_steps=200)
    assert run_alone(Sampler, second) == 0
    first.close("stopped", 0)
    assert run_alone(Trainer, run) == 0
    found = balance(run.run_dir)
    assert found.holds
    assert {name.split("-")[0] for name in found.taken} == {"s0", "s1"}


def test_a_torn_segment_is_dropped_and_counted(settings: Make) -> None:
    """A segment cut in the middle of a line is lost as a whole, by name and number, and training goes on."""
    run = settings(max_age=20)
    assert run_alone(Sampler, run) == 0
    victim = sorted((run.run_dir / "ready").iterdir())[2]
    promised = int(victim.stem.rsplit("-n", 1)[1])
    victim.write_bytes(victim.read_bytes()[:500])
    assert run_alone(Trainer, run) == 0
    found = balance(run.run_dir)
    assert found.holds
    assert len(found.dropped_other) == promised
    drops = [line for line in events(run, "trainer", "take") if line["dropped_other"] != "0"]
    assert [(line["dropped_other"], line["reason"]) for line in drops] == [(str(promised), "torn")]
    assert (run.run_dir / "damaged" / "t0" / victim.name).exists()


def test_unreadable_weights_leave_the_sampler_running(settings: Make) -> None:
    """The sampler says that what LATEST names is unreadable and goes on with its version."""
    run = settings()
    assert serial(run) == 0
    latest = run.run_dir / "weights" / (run.run_dir / "weights" / "LATEST").read_text().strip()
    latest.write_bytes(b"torn")
    later = settings(total_steps=700)
    assert run_alone(Sampler, later) == 0
    assert latest.name in events(later, "sampler", "weights_unreadable")[0]["reason"]
    assert events(later, "sampler", "sampled")[-1]["policy_version"] == "0"


def test_a_full_disk_ends_the_sampler_without_a_loss(settings: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """With no room for the third segment the sampler waits, ends with code 1, and what it published balances; later it goes on."""
    run = settings()
    real = Path.open

    def no_room(self: Path, *arguments: object, **keywords: object) -> object:
        if self.name.startswith(".s0-000002"):
            raise OSError(28, "No space left on device")
        return real(self, *arguments, **keywords)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "open", no_room)
        assert run_alone(Sampler, run) == 1
    assert [line["reason"] for line in events(run, "sampler", "waiting")] == ["disk_full"]
    assert events(run, "sampler", "ended")[0]["reason"].startswith('"os_error')
    assert len(list((run.run_dir / "ready").iterdir())) == 2
    assert run_alone(Sampler, run) == 0
    found = balance(run.run_dir)
    assert found.holds
    assert len(set(found.left)) == len(found.sampled)


def test_a_full_disk_at_the_checkpoint_repeats_nothing(settings: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """An update whose checkpoint does not fit never happened: its trajectories are put back and taken once, later."""
    run = settings(max_age=20)
    assert run_alone(Sampler, run) == 0
    with monkeypatch.context() as patch:
        patch.setattr("reference_loop.checkpoint.replace_with", lambda *_a, **_k: (_ for _ in ()).throw(OSError(28, "full")))
        assert run_alone(Trainer, run) == 1
    assert len(balance(run.run_dir).taken) == 0
    assert run_alone(Trainer, run) == 0
    found = balance(run.run_dir)
    assert found.holds
    assert len(found.taken) == len(found.sampled)


def test_log_lines_survive_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A line that fits by half costs itself only: the next one starts on a line of its own."""
    log = EventLog(tmp_path / "x.log", side="sampling", quiet=True)
    real = os.write
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", lambda descriptor, content: real(descriptor, content[:10]))
        log("lost", n=1)
    log("kept", note="two words")
    log.close()
    last = (tmp_path / "x.log").read_text().splitlines()[-1]
    assert last.endswith(f'pid={os.getpid()} side=sampling kept note="two words"')


def start(settings: Settings, *extra: str) -> subprocess.Popen[bytes]:
    """Start the loop as a program."""
    return subprocess.Popen([sys.executable, "-m", "reference_loop", *as_arguments(settings), *extra])


def test_two_programs_side_by_side_balance(settings: Make) -> None:
    """In parallel both run to a clean end under two process ids, weights travel, and the ledger balances to the last one."""
    run = settings(total_steps=5_000, num_envs=16, rollout_steps=32)
    assert start(run).wait(timeout=400) == 0
    found = balance(run.run_dir)
    assert found.holds
    assert not found.left
    assert not found.in_flight
    assert int(events(run, "sampler", "loaded")[-1]["policy_version"]) > 3
    pids = {side: set(re.findall(r" pid=(\d+) ", (run.run_dir / f"{side}.log").read_text())) for side in ("sampler", "trainer")}
    assert len(pids["sampler"] | pids["trainer"]) == 2
    takes = events(run, "trainer", "take")
    assert max(int(line["gap_max"]) for line in takes if "gap_max" in line) <= run.max_age


def test_a_stop_signal_ends_both_cleanly_and_resume_repeats_nothing(settings: Make) -> None:
    """SIGTERM to the loop ends both with code 0 and puts back what was claimed; a serial start then finishes the run."""
    run = settings(total_steps=10**7, sampler_latency=0.002)
    process = start(run)
    log = run.run_dir / "trainer.log"
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline and not (log.exists() and " update_done step=3 " in log.read_text()):
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=200) == 0
    assert events(run, "sampler", "ended")[0]["reason"] == "stopped"
    assert balance(run.run_dir).holds
    steps = int(events(run, "sampler", "ended")[0]["sample_step"])
    assert serial(settings(total_steps=steps + 300)) == 0
    found = balance(run.run_dir)
    assert found.holds
    assert not found.left
    assert len(set(found.taken + found.dropped_stale)) == len(found.sampled)


def test_a_side_that_is_ended_by_the_loop_sets_no_exit_code(settings: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """The sampler ends with 1 before the trainer listens for signals: the trainer dies of ours (15), and the loop's code is 1."""
    real = subprocess.Popen

    def stands_in(words: list[str]) -> subprocess.Popen[bytes]:
        return real([sys.executable, "-c", "import sys, time; time.sleep(60 * ('trainer' in sys.argv[1])); sys.exit(1)", words[2]])

    monkeypatch.setattr(signal, "signal", lambda *_: None)  # the test process keeps its own
    monkeypatch.setattr(subprocess, "Popen", stands_in)
    assert main(list(as_arguments(settings()))) == 1


def test_kills_at_random_moments() -> None:
    """Eight SIGKILLs of sampler, trainer and both: after each the files balance, at the end nothing is lost or repeated."""
    script = Path(__file__).parents[2] / "bench" / "kill_loop.py"
    subprocess.run([sys.executable, str(script), "--kills", "8"], check=True, timeout=500)


@pytest.mark.soak
def test_three_hundred_kills() -> None:
    """The same three hundred times, for each JSON layout."""
    script = Path(__file__).parents[2] / "bench" / "kill_loop.py"
    for layout in ("slice", "step"):
        subprocess.run([sys.executable, str(script), "--kills", "300", "--layout", layout], check=True, timeout=900)


@pytest.mark.soak
@pytest.mark.parametrize("mode", [["--serial"], []], ids=["serial", "parallel"])
@pytest.mark.parametrize("seed", [1, 2, 3, 4, 5])
def test_it_learns(tmp_path: Path, seed: int, mode: list[str]) -> None:
    """With default settings each seed reaches a mean return of 475 over 100 episodes, and the run balances."""
    run = Settings(run_dir=tmp_path / "run", seed=seed, target_return=475.0, quiet=True)
    assert start(run, *mode).wait(timeout=300) == 0
    assert events(run, "sampler", "ended")[0]["reason"] == "target_return"
    assert balance(run.run_dir).holds
