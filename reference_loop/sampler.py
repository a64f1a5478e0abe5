"""The sampling program: acts, and writes trajectory segments into the run folder. Knows no loss and no optimiser.

Run it as `python -m reference_loop.sampler --run-dir DIR`; it comes to a clean end with no trainer in sight.
"""

from __future__ import annotations

import time

import numpy as np
import torch

from reference_loop.config import NUM_ACTIONS, Settings, write_run_json
from reference_loop.entry import Stop, run_program
from reference_loop.env import CartPoles
from reference_loop.faults import Seams, seams_for
from reference_loop.log import EventLog
from reference_loop.policy import initial_actor
from reference_loop.producer import Producer
from reference_loop.rollout import Episodes, Rollout
from reference_loop.segment import Header, SegmentName, encode
from reference_loop.store import POLL_S, Presence, alive, with_room
from reference_loop.trajectory import Floats, Slices
from reference_loop.weights import UnreadableWeightsError, load_newer

WAIT_NOTED_S = 1.0
"""Waits shorter than this leave no line of their own."""


class Sampler:
    """One producer of trajectory segments."""

    def __init__(self, settings: Settings, stop: Stop) -> None:
        self._seams: Seams = seams_for(settings.fault)
        self._settings = settings = self._seams.settings(settings)
        self._stop = stop
        self._folder = settings.run_dir
        self._presence = Presence(self._folder, f"sampler-{settings.producer}")
        write_run_json(settings)
        name = "sampler.log" if settings.producer == "s0" else f"sampler-{settings.producer}.log"
        self._log = EventLog(self._folder / name, side="sampling", quiet=settings.quiet)
        self._log(
            "started", run_id=settings.name, producer=settings.producer, seed=settings.seed, unit="trajectory",
            num_envs=settings.num_envs, rollout_steps=settings.rollout_steps, total_steps=settings.total_steps,
            layout=settings.layout, max_unread=settings.max_unread, fault=settings.fault or "none",
        )  # fmt: skip
        self._producer = Producer(self._folder, settings.producer, fsync=settings.fsync)
        last = self._producer.last
        self._seq: int = last.get("seq", -1) + 1
        self._sample_step: int = last.get("sample_step", 0)
        self._episodes = Episodes(settings.num_envs, last.get("next_episode_id", 0))
        if last:
            self._log(
                "resumed", sampled_total=self._producer.sampled_total, sample_step=self._sample_step, next_segment=self._seq,
                recovered=self._producer.recovered,
            )  # fmt: skip
        seeds = np.random.SeedSequence([settings.seed, self._seq, *settings.producer.encode()]).generate_state(2)
        self._envs = CartPoles(settings.num_envs, int(seeds[0]))
        self._noise = torch.Generator().manual_seed(int(seeds[1]))
        self._actor = initial_actor(settings.seed)
        self._version = 0
        self._seen: int | None = None
        self._acts = 0
        self._waited = 0.0
        self._alone = False

    def run(self) -> str:
        """Sample until there is a reason to end, and return it."""
        while True:
            reason = self.why_end() or self._wait_for_room()
            if reason:
                return reason
            self.collect()

    def why_end(self) -> str:
        """Give the reason to end now; empty while there is none."""
        settings = self._settings
        if self._stop.asked:
            return "stopped"
        if self._sample_step >= settings.total_steps:
            return "total_steps"
        window = self._episodes.returns
        if settings.target_return and len(window) == window.maxlen and self._episodes.return_mean >= settings.target_return:
            return "target_return"
        return ""

    def collect(self) -> None:
        """Load newer weights if there are any, sample one rollout, publish it as one segment."""
        self._load_weights()
        start = time.time()
        rollout, logprob = self._act()
        if not len(rollout):
            return
        end = time.time()
        finished = self._episodes.finished
        slices = rollout.cut(
            logprob, self._episodes, producer=self._settings.producer, seq=self._seq, version=self._version,
            sample_step=self._sample_step,
        )  # fmt: skip
        self._sample_step += slices.rows
        if not len(slices):
            return  # one tick in which every environment was reset
        self._publish(slices, ticks=len(rollout), episodes=self._episodes.finished - finished, start=start, end=end)

    def _act(self) -> tuple[Rollout, Floats]:
        """Step all environments T times (fewer when asked to stop); the rollout and its log probabilities [T, N].

        Actions are drawn by the Gumbel-max rule from noise made for the whole rollout at once: argmax(logits + noise).
        """
        settings, envs, seams = self._settings, self._envs, self._seams
        uniform = torch.rand(settings.rollout_steps, settings.num_envs, NUM_ACTIONS, generator=self._noise)
        gumbel = -torch.log(-torch.log(uniform.clamp_min(1e-20)))
        rollout = Rollout(envs.obs)
        logits_seen: list[torch.Tensor] = []
        actions: list[torch.Tensor] = []
        with torch.no_grad(), seams.rollout_grad():
            for noise in gumbel:
                if self._stop.asked:
                    break
                obs = torch.from_numpy(envs.obs)
                logits = self._actor(obs)
                action = (logits + noise).argmax(dim=-1)
                seams.acted(self._actor, obs)
                chosen = action.numpy()
                rollout.add(chosen, envs.step(chosen), time.time())
                logits_seen.append(logits)
                actions.append(action)
                if settings.sampler_latency:
                    time.sleep(settings.sampler_latency)
        self._acts += len(rollout)
        if not len(rollout):
            return rollout, np.empty((0, settings.num_envs), dtype=np.float32)
        logprob = torch.log_softmax(torch.stack(logits_seen).detach(), dim=-1)
        return rollout, logprob.gather(-1, torch.stack(actions).unsqueeze(-1)).squeeze(-1).numpy()

    def _load_weights(self) -> None:
        try:
            weights = load_newer(self._folder, self._seen)
        except UnreadableWeightsError as error:
            self._log("weights_unreadable", policy_version=self._version, reason=error)
            return
        if weights is None:
            return
        self._seen = weights.policy_version
        used = self._seams.loaded(weights)
        if used is None:
            return
        self._actor.load_state_dict(used.parameters)
        self._version = used.policy_version
        self._log("loaded", policy_version=self._version)

    def _publish(self, slices: Slices, *, ticks: int, episodes: int, start: float, end: float) -> None:
        settings = self._settings
        name = SegmentName(settings.producer, self._seq, self._version, len(slices), "arrow" if settings.layout == "arrow" else "jsonl")
        header = Header(
            run_id=settings.name, producer=settings.producer, seq=self._seq, policy_version=self._version,
            layout=settings.layout, trajectories=len(slices), rows=slices.rows, sample_step=self._sample_step,
            episodes=episodes, rollout_start=start, rollout_end=end,
        )  # fmt: skip
        content = encode(header, slices, self._seams.record)
        journal_line = {
            "seq": self._seq, "trajectories": len(slices), "rows": slices.rows, "policy_version": self._version,
            "sample_step": self._sample_step, "next_episode_id": self._episodes.next_id,
        }  # fmt: skip
        with_room(
            lambda: self._producer.publish(name, content, journal_line), patience=settings.disk_patience,
            note=lambda error: self._log("waiting", reason="disk_full", segment=name, error=error),
        )  # fmt: skip
        self._seq += 1
        self._log(
            "sampled", n=len(slices), sampled_total=self._producer.sampled_total, policy_version=self._version,
            sample_step=self._sample_step, segment=name, act_calls=self._acts,
        )  # fmt: skip
        self._log(
            "rollout", rollout_s=end - start, write_s=time.time() - end, waited_s=self._waited, steps=slices.rows,
            episodes=episodes, batch=f"{settings.num_envs}x{ticks}", return_mean=self._episodes.return_mean,
        )  # fmt: skip
        self._waited = 0.0

    def _wait_for_room(self) -> str:
        """Wait while too much lies unread; a reason to end when nobody will ever read it."""
        began = time.monotonic()
        noted = WAIT_NOTED_S
        while not self._stop.asked:
            unread = self._producer.unread()
            self._waited = time.monotonic() - began
            if unread < self._settings.max_unread:
                return ""
            if alive(self._folder, "trainer"):
                self._alone = False
            elif self._waited > self._settings.patience:
                self._alone = True
            if self._alone:
                return "" if unread < self._settings.max_backlog else "backlog_full"
            if self._waited > noted:
                self._log("waiting", reason="backpressure", unread=unread, max_unread=self._settings.max_unread, waited_s=self._waited)
                noted *= 2
            time.sleep(POLL_S)
        return "stopped"

    def close(self, reason: str, exit_code: int) -> None:
        """End: say so in the log and the journal, and let go of the run folder."""
        self._log(
            "ended", reason=reason, sampled_total=self._producer.sampled_total, sample_step=self._sample_step,
            episodes=self._episodes.next_id, return_mean=self._episodes.return_mean, exit=exit_code,
        )  # fmt: skip
        with_room(lambda: self._producer.close(reason), patience=0.0, note=lambda _error: None)
        self._envs.close()
        self._log.close()
        self._presence.close()


if __name__ == "__main__":
    raise SystemExit(run_program(Sampler))
