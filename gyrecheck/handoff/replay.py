"""Recompute log-probs of recorded actions with the recorded version's weights, by the user's own function.

The function gets observations and actions as torch tensors, and the weights when a folder is given:
`f(observations [N, ...], actions [N] or [N, A], weights) -> log-probs [N]`. For token records it is called once a record with the prompt's
tokens [P] and the answer's tokens [R], and returns [R]. It runs under `no_grad`; everything else about it is the user's.
"""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gyrecheck.handoff.replay_plan import Call, Floats, RowPlan
from gyrecheck.handoff.weights_folder import WeightsFolder
from gyrecheck.model.errors import GyreError, did_you_mean
from gyrecheck.model.fields import RecordBatch
from gyrecheck.rulebook.contract import RoleMap

SAMPLE = 512
"""Elements kept of each version, for trying neighbouring versions and for calling the policy twice."""


@dataclass(slots=True)
class Replayer:
    """Calls the policy version by version. `absent` counts rows whose weights are not in the folder."""

    policy: Callable[..., Any]
    name: str
    folder: WeightsFolder | None
    absent: dict[int, int] = field(default_factory=dict)
    samples: dict[int | None, list[Call]] = field(default_factory=dict)
    unsteady: float = 0.0
    """Largest difference in nats between two calls with the same input; above 0 the policy is not deterministic."""
    _loaded: tuple[int, Any] | None = None
    _probed: bool = False

    def replay(self, batch: RecordBatch, roles: RoleMap, *, limit: int = 0) -> tuple[Floats, npt.NDArray[np.bool_]]:
        """Log-probs for every element of the batch's `logprob` column, and which rows were replayed; at most the first `limit` when not 0.

        Raises:
            GyreError: a field that replay needs is missing or of no regular shape, or the policy fails.
        """
        plan = RowPlan(batch, roles)
        out = np.full(int(plan.counts.sum()), np.nan)
        done = np.zeros(batch.rows, dtype=np.bool_)
        for version, every in plan.by_version(needed=self.folder is not None):
            rows = [row for row in every if row < limit] if limit else every
            if not rows:
                continue
            if self.folder is not None and version not in self.folder.files:
                self.absent[version or 0] = self.absent.get(version or 0, 0) + len(rows)
                continue
            for call, places, part in plan.calls(version, rows):
                out[places] = self.ask(call, version)
                done[part] = True
                self._keep(call)
        return out, done

    def ask(self, call: Call, version: int | None) -> Floats:
        """The policy's log-probs [N] for one call with the weights of `version`.

        Raises:
            GyreError: it raises, or returns something else than N numbers.
        """
        import torch

        observations = _tensors(call.observations)
        actions = torch.from_numpy(np.ascontiguousarray(call.actions))
        arguments: list[object] = [observations, actions]
        if self.folder is not None and version is not None:
            arguments.append(self._weights(version))
        try:
            with torch.no_grad(), redirect_stdout(sys.stderr):  # standard output is the report's
                answer = self.policy(*arguments)
        except (Exception, SystemExit) as error:
            shapes = f"observations {_shape(call.observations)}, actions {list(call.actions.shape)}"
            raise GyreError(
                f"--policy {self.name}: raised {type(error).__name__}: {error} (version {version}, {shapes})",
                hint="it is called as f(observations, actions, weights) and returns one log-prob an action",
            ) from error
        try:
            array = (
                answer.detach().cpu().to(torch.float64).numpy()
                if isinstance(answer, torch.Tensor)
                else np.asarray(answer, dtype=np.float64)
            )
        except (TypeError, ValueError) as error:
            raise GyreError(f"--policy {self.name}: returned {type(answer).__name__}, expected {call.recorded.size} numbers") from error
        size = call.recorded.size
        if array.size != size or array.ndim > 2 or (array.ndim == 2 and 1 not in array.shape):
            more = "; sum over action dimensions" if array.ndim == 2 and array.shape[0] == size else ""
            raise GyreError(f"--policy {self.name}: returned shape {list(array.shape)}, expected [{size}]{more}")
        return np.asarray(array.reshape(size), dtype=np.float64)

    def fits(self, version: int) -> tuple[int, float, float] | None:
        """Another version whose weights give the recorded log-probs, with the median |log ratio| under it and under the tag."""
        if self.folder is None or version not in self.samples:
            return None
        calls = self.samples[version]
        recorded = np.concatenate([call.recorded for call in calls])

        def gap(other: int) -> float:
            return float(np.median(np.abs(np.concatenate([self.ask(call, other) for call in calls]) - recorded)))

        tagged = gap(version)
        for other in self.folder.near(version):
            found = gap(other)
            if found < 1e-3 and found < 0.05 * tagged:
                return other, found, tagged
        return None

    def _keep(self, call: Call) -> None:
        kept = self.samples.setdefault(call.version, [])
        if sum(known.recorded.size for known in kept) < SAMPLE:
            if call.recorded.size > SAMPLE and call.actions.shape[:1] == call.recorded.shape:
                call = Call(_first(call.observations, SAMPLE), call.actions[:SAMPLE], call.recorded[:SAMPLE], call.version)
            kept.append(call)
        if not self._probed:
            self._probed = True
            first, second = self.ask(call, call.version), self.ask(call, call.version)
            self.unsteady = float(np.max(np.abs(first - second), initial=0.0))

    def _weights(self, version: int) -> object:
        if self._loaded is None or self._loaded[0] != version:
            assert self.folder is not None  # noqa: S101 - narrows the type; only called with a folder
            self._loaded = (version, self.folder.load(version))
        return self._loaded[1]


def load_policy(spec: str, *, weights: bool) -> Callable[..., Any]:
    """The function `module:function`, imported with the working folder on the path.

    Raises:
        GyreError: the form is wrong, the module or function is not there, or it does not take the arguments it will get.
    """
    module_name, _, function_name = spec.partition(":")
    if not module_name or not function_name:
        raise GyreError(f"--policy {spec}: expected MODULE:FUNCTION", hint="e.g. --policy my_agent.policy:log_prob")
    try:
        import torch  # noqa: F401 - said here once, before anything is read
    except ModuleNotFoundError as error:
        raise GyreError("replay needs torch", hint="pip install 'gyrecheck[loop]'") from error
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        with redirect_stdout(sys.stderr):
            module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        raise GyreError(f"--policy {spec}: no module named {error.name}", hint="run in the project's folder, or install it") from error
    except (Exception, SystemExit) as error:
        raise GyreError(f"--policy {spec}: importing {module_name} raised {type(error).__name__}: {error}") from error
    function: Callable[..., Any] | None = getattr(module, function_name, None)
    if function is None or not callable(function):
        near = did_you_mean(function_name, [name for name, value in vars(module).items() if callable(value) and not name.startswith("_")])
        has = (
            f"`{function_name}` of {module_name} is no function"
            if function is not None
            else f"{module_name} has no function `{function_name}`"
        )
        raise GyreError(f"--policy {spec}: {has}", hint=near)
    try:
        inspect.signature(function).bind(*[None] * (3 if weights else 2))
    except TypeError as error:
        wanted = "(observations, actions, weights)" if weights else "(observations, actions)"
        more = "--weights DIR gives the third argument" if not weights else "the weights come as a dict of tensors"
        raise GyreError(f"--policy {spec}: cannot be called as f{wanted}: {error}", hint=more) from error
    except ValueError:  # no signature to be had; the call will tell
        pass
    return function


def _tensors(value: object) -> object:
    import torch

    if isinstance(value, dict):
        return {key: torch.from_numpy(np.ascontiguousarray(array)) for key, array in value.items()}
    return torch.from_numpy(np.ascontiguousarray(np.asarray(value)))


def _first(value: object, count: int) -> object:
    return {key: array[:count] for key, array in value.items()} if isinstance(value, dict) else np.asarray(value)[:count]


def _shape(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {list(array.shape)}" for key, array in value.items())
    return str(list(np.asarray(value).shape))
