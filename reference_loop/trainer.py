"""The training program: reads trajectory segments from the run folder, and hands weights back. Knows no environment.

Run it as `python -m reference_loop.trainer --run-dir DIR`; it comes to a clean end with no sampler in sight.
Age of a trajectory = the trainer's version when it is used - the version it was sampled with; it is dropped when its age is
above `max_age`. The check is made in one place, just before each update.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from reference_loop import checkpoint, weights
from reference_loop.config import Settings, write_run_json
from reference_loop.consumer import Consumer, Fates
from reference_loop.decode import decode
from reference_loop.entry import ContractBrokenError, Stop, run_program
from reference_loop.faults import seams_for
from reference_loop.log import EventLog
from reference_loop.ppo import Learner, UpdateStats
from reference_loop.segment import ContractError, Header, SegmentName, TornSegmentError
from reference_loop.store import POLL_S, Presence, alive, with_room
from reference_loop.trajectory import Integers, Slices, join, trajectory_id

WAIT_NOTED_S = 1.0
"""Waits shorter than this leave no line of their own."""


@dataclass(slots=True)
class Held:
    """A claimed segment that is not settled yet."""

    header: Header
    slices: Slices
    fates: Fates


class Trainer:
    """The one consumer of trajectory segments that also publishes weights."""

    def __init__(self, settings: Settings, stop: Stop) -> None:
        self._seams = seams_for(settings.fault)
        self._settings = settings = self._seams.settings(settings)
        self._stop = stop
        self._folder = settings.run_dir
        self._presence = Presence(self._folder, "trainer")
        write_run_json(settings)
        self._log = EventLog(self._folder / "trainer.log", side="training", quiet=settings.quiet)
        self._log(
            "started", run_id=settings.name, consumer=settings.consumer, seed=settings.seed, unit="trajectory",
            max_age=settings.max_age, max_age_unit="version", batch_trajectories=settings.needed, epochs=settings.epochs,
            minibatches=settings.minibatches, lr=settings.learning_rate, fault=settings.fault or "none",
        )  # fmt: skip
        self._learner = Learner(settings, self._seams)
        self._consumer = Consumer(self._folder, settings.consumer, keep=settings.keep_segments, fsync=settings.fsync)
        self._version = 0
        self._train_step = 0
        self._buffer: list[Held] = []
        self._beside: list[Held] = []
        self._newest_step = 0
        self._batch_noted = 1
        self._resume()

    def _resume(self) -> None:
        state = checkpoint.read(self._folder)
        if state is not None:
            self._learner.restore(state.tensors, state.train_step, state.optimizer_steps)
            self._version, self._train_step = state.policy_version, state.train_step
        else:
            self._write_weights(parent=-1)
        self._hand_back()
        returned = self._consumer.recover(state.owed if state else [])
        totals = self._consumer.totals
        if state is not None or totals.taken or totals.dropped_stale or totals.dropped_other or returned:
            self._log(
                "resumed", policy_version=self._version, step=self._train_step, recovered=returned, taken_total=totals.taken,
                dropped_stale_total=totals.dropped_stale, dropped_other_total=totals.dropped_other,
            )  # fmt: skip

    def run(self) -> str:
        """Consume until there is a reason to end, and return it."""
        began, noted = time.monotonic(), WAIT_NOTED_S
        while not self._stop.asked:
            if self._settings.max_updates and self._train_step >= self._settings.max_updates:
                return "max_updates"
            sampling = alive(self._folder, "sampler")
            if self.consume():
                began, noted = time.monotonic(), WAIT_NOTED_S
                continue
            waited = time.monotonic() - began
            if not sampling and (waited > self._settings.patience or self._consumer.producers_ended()):
                return "no_more_segments"
            if waited > noted:
                self._note_wait(waited)
                noted *= 2
            time.sleep(POLL_S)
        return "stopped"

    def _note_wait(self, waited: float) -> None:
        if self._buffer:
            self._log("waiting", reason="batch", have=self._buffered(), need=self._settings.needed, waited_s=waited)
        else:
            self._log("waiting", reason="trajectories", unread=0, waited_s=waited)

    def consume(self) -> bool:
        """Claim one segment and use what is ready to be used; False when there was none to claim."""
        claimed = self._consumer.claim()
        if claimed is None:
            return False
        name, content = claimed
        if self._consumer.is_settled(name):
            self._consumer.retire(name)
            return True
        try:
            header, slices = decode(content, name.suffix, self._seams.line)
        except TornSegmentError as error:
            self._drop_damaged(name, error)
            return True
        except ContractError as error:
            self._log("rejected", n=name.trajectories, reason=error.reason, field=error.field, segment=name, message=error)
            raise ContractBrokenError(f"contract_{error.reason}") from error
        held = Held(header, slices, Fates(name))
        (self._beside if self._seams.unchecked(name.seq) else self._buffer).append(held)
        self._newest_step = max(self._newest_step, header.sample_step)
        self._sweep()
        if self._buffered() >= self._settings.needed:
            self._update()
            self._batch_noted = 1
        elif self._buffered() >= self._batch_noted:
            self._note_wait(0.0)
            self._batch_noted = 2 * self._buffered()
        return True

    def _buffered(self) -> int:
        return sum(len(held.slices) for held in self._buffer)

    def _age(self, slices: Slices) -> Integers:
        return self._version - slices.policy_version

    def _sweep(self) -> None:
        """Drop what is too old by now, in versions and, where limited, in environment steps."""
        settings = self._settings
        emptied = []
        for held in self._buffer:
            keep = self._seams.fresh(self._age(held.slices), settings.max_age)
            if settings.max_age_steps:
                keep &= self._newest_step - held.slices.sample_step <= settings.max_age_steps
            if keep.all():
                continue
            held.fates.dropped_stale += [name for name, kept in zip(held.slices.trajectory_id, keep, strict=True) if not kept]
            ages = self._age(held.slices)[~keep]
            held.slices = held.slices.where(keep)
            emptied += [held] if not len(held.slices) else []
            self._log(
                "stale", n=len(ages), age_min=int(ages.min()), age_max=int(ages.max()), max_age=settings.max_age,
                policy_version=self._version, segment=held.fates.segment,
            )  # fmt: skip
        if emptied:
            self._buffer = [held for held in self._buffer if len(held.slices)]
            self._settle(emptied, self._lines(emptied))
            self._log_take(emptied, np.empty(0, dtype=np.int64))

    def _drop_damaged(self, name: SegmentName, error: TornSegmentError) -> None:
        """Book every trajectory that the file's name promised as lost to damage."""
        ids = [trajectory_id(name.producer, name.seq, index) for index in range(name.trajectories)]
        held = Fates(name, dropped_other={"torn": ids})
        self._log("damaged", n=len(ids), reason="torn", segment=name, message=error)
        self._room(lambda: self._consumer.settle([held.line(self._version, self._train_step)]))
        self._consumer.retire(name, damaged=True)
        self._log_take([], np.empty(0, dtype=np.int64), dropped_other=len(ids), reason="torn")

    def _update(self) -> None:
        """Train on everything buffered, make it final, hand the new weights back."""
        used, beside = self._buffer, self._beside
        self._buffer, self._beside = [], []
        batch = join([held.slices for held in used + beside])
        age = np.concatenate([self._age(held.slices) for held in used])
        start = time.time()
        stats = self._learner.update(batch, self._train_step)
        end = time.time()
        if not np.isfinite(stats.loss):
            self._log("rejected", n=len(batch), reason="loss_not_finite", loss=stats.loss)
            raise ContractBrokenError("loss_not_finite")
        self._train_step += 1
        for held in used:
            held.fates.taken = self._seams.counted(list(held.slices.trajectory_id))
        lines = self._lines(used)
        self._version += 1
        self._write_weights(parent=self._version - 1)
        state = checkpoint.Checkpoint(self._version, self._train_step, self._learner.optimizer_steps, lines, self._learner.tensors())
        self._room(lambda: checkpoint.write(self._folder, state, fsync=self._settings.fsync))
        self._settle(used, lines)
        for held in beside:
            self._consumer.retire(held.fates.segment)
        self._log_take(used, age)
        self._log_update(stats)
        self._hand_back()
        self._log_cycle(used + beside, batch, start, end)

    def _lines(self, held: list[Held]) -> list[dict[str, Any]]:
        return [part.fates.line(self._version, self._train_step) for part in held]

    def _settle(self, held: list[Held], lines: list[dict[str, Any]]) -> None:
        self._room(lambda: self._consumer.settle(lines))
        for part in held:
            name = part.fates.segment
            if part.fates.taken and self._seams.again(name.seq):
                self._consumer.read_again(name)
            else:
                self._consumer.retire(name)

    def _write_weights(self, *, parent: int) -> None:
        new = weights.Weights(self._version, self._learner.actor_parameters())
        self._room(lambda: weights.write(self._folder, new, parent=parent, fsync=self._settings.fsync))

    def _hand_back(self) -> None:
        if not self._seams.publishes:
            return
        keep = self._settings.max_age + 2
        self._room(lambda: weights.point_to(self._folder, self._version, keep=keep, fsync=self._settings.fsync))
        self._log("published", policy_version=self._version)

    def _room(self, action: Any) -> None:  # noqa: ANN401 - any call without arguments
        with_room(
            action, patience=self._settings.disk_patience,
            note=lambda error: self._log("waiting", reason="disk_full", error=error),
        )  # fmt: skip

    def _log_take(self, held: list[Held], age: Integers, *, dropped_other: int = 0, reason: str = "none") -> None:
        totals = self._consumer.totals
        gaps: dict[str, object] = {}
        if len(age):
            gaps = {"gap_min": int(age.min()), "gap_max": int(age.max()), "gap_mean": float(age.mean())}
        self._log(
            "take", dropped_stale=sum(len(part.fates.dropped_stale) for part in held),
            taken=sum(len(part.fates.taken) for part in held), buffer_left=self._buffered() + self._consumer.unread(),
            dropped_other=dropped_other, reason=reason, **gaps, max_age=self._settings.max_age, taken_total=totals.taken,
            dropped_stale_total=totals.dropped_stale, dropped_other_total=totals.dropped_other,
        )  # fmt: skip

    def _log_update(self, stats: UpdateStats) -> None:
        self._log(
            "update_done", step=self._train_step, loss=stats.loss, policy_loss=stats.policy_loss, value_loss=stats.value_loss,
            entropy=stats.entropy, clip_fraction=stats.clip_fraction, ratio_mean=stats.ratio_mean, lr=stats.learning_rate,
            optimizer_steps=self._learner.optimizer_steps, policy_version=self._version,
        )  # fmt: skip

    def _log_cycle(self, held: list[Held], batch: Slices, start: float, end: float) -> None:
        """Write the timing line; the two rollout times span all segments of the batch."""
        rollout_start = min(part.header.rollout_start for part in held)
        rollout_end = max(part.header.rollout_end for part in held)
        self._log(
            "cycle", run_id=self._settings.name, rollout_s=sum(part.header.rollout_end - part.header.rollout_start for part in held),
            train_s=end - start, total_s=end - rollout_start, n_steps=batch.rows,
            n_episodes=int((batch.terminated | batch.truncated).sum()),
            batch_shape=f"[{len(batch)},{int(batch.length.max())},{batch.obs.shape[1]}]", policy_version=self._version, note="-",
            rollout_start=f"{rollout_start:.6f}", rollout_end=f"{rollout_end:.6f}", train_start=f"{start:.6f}", train_end=f"{end:.6f}",
        )  # fmt: skip

    def close(self, reason: str, exit_code: int) -> None:
        """End: put back what was claimed and not used, log the totals, and let go of the run folder."""
        left = self._consumer.put_back()
        totals = self._consumer.totals
        self._log(
            "ended", reason=reason, step=self._train_step, policy_version=self._version, taken_total=totals.taken,
            dropped_stale_total=totals.dropped_stale, dropped_other_total=totals.dropped_other,
            buffer_left=self._consumer.unread(), put_back=left, exit=exit_code,
        )  # fmt: skip
        self._consumer.close()
        self._log.close()
        self._presence.close()


if __name__ == "__main__":
    raise SystemExit(run_program(Trainer))
