"""The gradient side of PPO: batches of numbers in, better weights out. Knows no environment, no file and no clock.

Advantages are generalised advantage estimation (Schulman et al. 2016), the loss is PPO's clipped surrogate (Schulman et al.
2017) with the *recorded* log probability as the ratio's denominator, so that staleness shows in the ratio.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from reference_loop.config import Settings
from reference_loop.faults import Seams
from reference_loop.policy import initial_actor, initial_critic
from reference_loop.trajectory import Flags, Floats, Integers, Slices


@dataclass(frozen=True, slots=True)
class UpdateStats:
    """What one update was like; means over the last pass over the batch."""

    loss: float
    policy_loss: float
    value_loss: float
    entropy: float
    clip_fraction: float
    ratio_mean: float
    learning_rate: float


def advantages(
    reward: Floats, value: Floats, final_value: Floats, length: Integers, terminated: Flags, *, gamma: float, gae_lambda: float
) -> Floats:
    """Generalised advantage estimates [R] of B slices lying behind one another.

    delta_t = reward_t + gamma * value_{t+1} - value_t;  A_t = delta_t + gamma * gae_lambda * A_{t+1}, with A = 0 after a slice.
    The value after a slice's last row is `final_value` [B], or 0 where the episode `terminated` [B]; a truncated or unfinished
    one is bootstrapped.
    """
    last = np.cumsum(length) - 1
    next_value = np.empty_like(value)
    next_value[:-1] = value[1:]
    next_value[last] = np.where(terminated, np.float32(0), final_value)
    delta = (reward + gamma * next_value - value).tolist()
    decay = np.full(len(value), gamma * gae_lambda)
    decay[last] = 0.0
    running = 0.0
    backwards = []
    for step, factor in zip(reversed(delta), reversed(decay.tolist()), strict=True):
        running = step + factor * running
        backwards.append(running)
    return np.array(backwards[::-1], dtype=np.float32)


class Learner:
    """Actor, critic, Adam and the learning-rate schedule."""

    def __init__(self, settings: Settings, seams: Seams) -> None:
        self._settings = settings
        self._seams = seams
        self.actor = initial_actor(settings.seed)
        self.critic = initial_critic(settings.seed)
        self._parameters = [*self.actor.parameters(), *self.critic.parameters()]
        self._optimizer = torch.optim.Adam(self._parameters, lr=settings.learning_rate, eps=1e-5, fused=True)
        self._scheduler = torch.optim.lr_scheduler.LambdaLR(self._optimizer, self._share_left)
        self._scale = np.float32(1 / (1 - settings.gamma))
        """Values are learned in this unit, the return of an endless run of rewards of 1, so that the value's gradient does
        not drown the policy's under the common norm clip."""
        self.optimizer_steps = 0

    def _share_left(self, update: int) -> float:
        """Share of the first learning rate that is left after `update` updates: linear, with a floor for runs that go on."""
        return max(0.02, 1 - update / self._settings.planned_updates)

    def update(self, batch: Slices, train_step: int) -> UpdateStats:
        """Make `epochs` passes over the batch in `minibatches` gradient steps each; order depends on seed and train step."""
        settings = self._settings
        obs = torch.from_numpy(batch.obs)
        with torch.no_grad():
            value = self._scale * self.critic(obs).squeeze(-1).numpy()
            final_value = self._scale * self.critic(torch.from_numpy(batch.final_obs)).squeeze(-1).numpy()
        advantage = advantages(
            batch.reward, value, final_value, batch.length, batch.terminated,
            gamma=settings.gamma, gae_lambda=settings.gae_lambda,
        )  # fmt: skip
        target = torch.from_numpy((advantage + value) / self._scale)
        advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
        columns = (obs, torch.from_numpy(batch.action), torch.from_numpy(batch.logprob), torch.from_numpy(advantage), target)
        order = np.random.default_rng((settings.seed, train_step))
        learning_rate = self._scheduler.get_last_lr()[0]
        seen: list[torch.Tensor] = []
        for epoch in range(settings.epochs):
            shuffled = torch.from_numpy(order.permutation(batch.rows))
            parts = [column[shuffled].tensor_split(settings.minibatches) for column in columns]
            for minibatch in zip(*parts, strict=True):
                stats = self._gradient_step(*minibatch, watch=epoch == settings.epochs - 1)
                seen += [stats] if stats is not None else []
        for _ in range(self._seams.scheduler_steps(len(batch))):
            self._scheduler.step()
        loss, policy_loss, value_loss, entropy_mean, clip_fraction, ratio_mean = torch.stack(seen).mean(dim=0).tolist()
        return UpdateStats(loss, policy_loss, value_loss, entropy_mean, clip_fraction, ratio_mean, float(learning_rate))

    def _gradient_step(
        self, obs: torch.Tensor, action: torch.Tensor, old_logprob: torch.Tensor, advantage: torch.Tensor, target: torch.Tensor,
        *, watch: bool,
    ) -> torch.Tensor | None:  # fmt: skip
        """Step once on rows [M]; when watched, give loss, policy loss, value loss, entropy, clip fraction, mean ratio."""
        settings = self._settings
        logits = self.actor(obs)
        logprob = -F.cross_entropy(logits, action, reduction="none")
        ratio = torch.exp(logprob - old_logprob)
        clipped = ratio.clamp(1 - settings.clip, 1 + settings.clip)
        policy_loss = -torch.minimum(ratio * advantage, clipped * advantage).mean()
        value_loss = F.mse_loss(self.critic(obs).squeeze(-1), target)
        loss = policy_loss + settings.value_coef * value_loss
        if settings.entropy_coef:
            loss = loss - settings.entropy_coef * entropy(logits)
        loss = self._seams.loss(loss, obs)
        self._optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call] # torch leaves it untyped
        nn.utils.clip_grad_norm_(self._parameters, settings.max_grad_norm)
        self._optimizer.step()
        self.optimizer_steps += 1
        if not watch:
            return None
        with torch.no_grad():
            outside = ((ratio - 1).abs() > settings.clip).float().mean()
            return torch.stack([loss, policy_loss, value_loss, entropy(logits), outside, ratio.mean()])

    def actor_parameters(self) -> dict[str, torch.Tensor]:
        """Return what the sampler needs to act."""
        return {name: value.detach() for name, value in self.actor.state_dict().items()}

    def tensors(self) -> dict[str, torch.Tensor]:
        """Return everything an exact continuation needs: parameters and Adam's moments, each flat in one vector."""
        moments = [self._optimizer.state[parameter] for parameter in self._parameters]
        return {
            "parameters": nn.utils.parameters_to_vector(self._parameters).detach(),
            "adam_first": torch.cat([moment["exp_avg"].ravel() for moment in moments]),
            "adam_second": torch.cat([moment["exp_avg_sq"].ravel() for moment in moments]),
            "adam_step": moments[0]["step"],
        }

    def restore(self, tensors: dict[str, torch.Tensor], train_step: int, optimizer_steps: int) -> None:
        """Go on where `tensors` were written."""
        sizes = [parameter.numel() for parameter in self._parameters]
        columns = [torch.split(tensors[name], sizes) for name in ("parameters", "adam_first", "adam_second")]
        for parameter, value, first, second in zip(self._parameters, *columns, strict=True):
            # Copies: views into the loaded vectors lie at other alignments, and other kernels round otherwise.
            parameter.data.copy_(value.reshape(parameter.shape))
            self._optimizer.state[parameter] = {
                "step": tensors["adam_step"].clone(),
                "exp_avg": first.reshape(parameter.shape).clone(),
                "exp_avg_sq": second.reshape(parameter.shape).clone(),
            }
        rate = self._settings.learning_rate * self._share_left(train_step)
        self._scheduler.load_state_dict(self._scheduler.state_dict() | {"last_epoch": train_step, "_last_lr": [rate]})
        self._optimizer.param_groups[0]["lr"] = rate
        self.optimizer_steps = optimizer_steps


def entropy(logits: torch.Tensor) -> torch.Tensor:
    """Mean entropy of the action distributions [M, A], in nats."""
    logprob = torch.log_softmax(logits, dim=-1)
    return -(logprob.exp() * logprob).sum(dim=-1).mean()
