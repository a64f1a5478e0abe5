"""Promises of the followed shards: every look is what a whole reading would give; a bad file costs no other; nothing is lost by order."""

import json
import random

from gyrecheck.hook.events import EventFile
from gyrecheck.hook.shard import Shard
from gyrecheck.model import shard_layout as layout
from gyrecheck.stream.shard_follow import FollowedShards, is_hooked
from gyrecheck.stream.shards import read_run


def test_each_look_equals_a_whole_reading(tmp_path):
    """Forty looks between counts, new rows, new processes and events: processes, events and pids are those that `read_run` gives."""
    chance = random.Random(3)
    shards = [Shard(str(tmp_path), "r")]
    followed = FollowedShards(tmp_path)
    signed = tmp_path / "processes.jsonl"
    for look in range(40):
        for _ in range(chance.randrange(6)):
            shard = chance.choice(shards)
            shard.cells[chance.choice(layout.CELLS[:5])][0] += 1
            place = shard.place_for(f"{chance.choice('EC')} {chance.choice('ST')} role place{chance.randrange(30)}")
            place[0] += chance.randrange(2)
        if look % 9 == 4:
            shards.append(Shard(str(tmp_path), "r"))
        events = tmp_path / f"{shards[-1].name}{layout.EVENTS_SUFFIX}"
        with events.open("a") as out:
            out.write(json.dumps({"k": "publish", "at": 1.0 + look, "version": look}) + "\n" + '{"k": "half"')
            out.write("}\n")
        with signed.open("a") as out:
            out.write(json.dumps({"k": "reached", "pid": look}) + "\n")
        run, changed = followed.poll()
        assert changed
        assert run == read_run(tmp_path)
    assert not followed.poll()[1]
    followed.close()


def test_a_bad_shard_is_a_problem_and_may_become_good(tmp_path):
    """A file that is no shard is named once, and the good one beside it is still counted."""
    good = Shard(str(tmp_path), "r")
    good.place_for("E S marked rollout")[0] = 4
    (tmp_path / "x.shard").write_bytes(b"no shard")
    followed = FollowedShards(tmp_path)
    run, _ = followed.poll()
    assert run is not None
    assert run.calls("S") == 4
    assert [problem.split(":")[0] for problem in run.problems] == ["x.shard"]
    followed.close()


def test_totals_of_a_writer_killed_between_are_taken_in_the_end(tmp_path):
    """An odd sequence that stays is read as it stands after a few looks, not never."""
    shard = Shard(str(tmp_path), "r")
    followed = FollowedShards(tmp_path)
    followed.poll()
    shard.cells["sequence"][0] = 3
    shard.cells["sampled"][0] = 9
    for _ in range(4):
        run, _ = followed.poll()
    assert run is not None
    assert run.total("sampled") == 9
    followed.close()


def test_a_folder_is_hooked_by_what_the_hook_writes(tmp_path):
    """Logs alone make no hooked folder; a shard or the hook's table does."""
    (tmp_path / "a.log").write_text("x\n")
    assert not is_hooked(tmp_path)
    (tmp_path / "hooks.json").write_text("{}")
    assert is_hooked(tmp_path)


def test_a_real_writers_events_are_read_as_they_come(tmp_path):
    """Events written through the hook's own file come out in time order with their fields."""
    shard = Shard(str(tmp_path), "r")
    file = EventFile(shard)
    followed = FollowedShards(tmp_path)
    for version in (1, 2):
        file.write("publish", version=version)
        run, changed = followed.poll()
        assert changed
        assert [event.number("version") for event in run.of("publish")] == list(range(1, version + 1))
    followed.close()
