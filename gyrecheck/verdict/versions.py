"""Policy versions on both sides: does the trainer's advance, does the sampler load it, does either go back."""

from __future__ import annotations

from gyrecheck.model.finding import Severity, State
from gyrecheck.model.snapshot import Series
from gyrecheck.verdict.flows import most_between
from gyrecheck.verdict.ruling import Because, Docket, count
from gyrecheck.verdict.view import View

_TRAINERS = ("trainer_version", "published")
_SAMPLERS = ("loaded", "sample_version")


def judge_versions(run: View, docket: Docket) -> None:
    """Enter the verdicts on versions."""
    _absent(run, docket)
    frozen = _frozen(run, docket)
    _went_back(run, docket)
    if not frozen and not _held_back(run, docket):
        _not_loaded(run, docket)


def _absent(run: View, docket: Docket) -> None:
    """Versions that are logged as None."""
    marks = run.snapshot.marked("no_version")
    told = sum(s.count for s in run.series("policy_version", "sample_version", "loaded"))
    if len(marks) >= 3 and told < len(marks):
        docket.add(
            "GYR401",
            State.BROKEN,
            f"{len(marks)} lines say that the data has no policy version",
            quantity="policy_version",
            value=None,
            first=marks[0].place,
            because=[marks[0].place, marks[-1].place],
            hint="write the version of the acting weights into each trajectory",
        )


def _trainer_series(run: View) -> tuple[Series, ...]:
    own = run.series(*_TRAINERS)
    return own or tuple(s for s in run.series("policy_version") if s.side != "sampling")


def _progress(run: View) -> list[tuple[int, float]]:
    """The trainer's steps as (order, count): updates, else the step axis, else consumption."""
    updates = run.updates
    if updates is not None and len(updates.orders) > 1:
        return list(zip(updates.orders, updates.values, strict=True))
    axis = next((s for s in run.series("step", least=3) if s.rises >= 2 and s.side != "sampling"), None)
    if axis is not None:
        return list(zip(axis.orders, axis.values, strict=True))
    taken = run.taken
    return list(zip(taken.orders, taken.values, strict=True)) if taken is not None else []


def _frozen(run: View, docket: Docket) -> bool:
    progress = _progress(run)
    if len(progress) < 3:
        return False
    least = docket.rules.thresholds.frozen_updates
    for series in _trainer_series(run):
        if series.count < 3:
            continue
        rises = [i for i in range(1, len(series)) if series.values[i] > series.values[i - 1]]
        since = rises[-1] if rises else 0
        steps = [o for (o, v), (_, before) in zip(progress[1:], progress, strict=False) if v > before]
        after = [o for o in steps if series.orders[since] < o <= series.orders[-1]]
        edges = [series.orders[0], *(series.orders[i] for i in rises)]
        usual = most_between(steps, edges)
        if len(after) < least or len(after) <= 3 * usual or len(series) - since < 3:
            continue
        place = series.place(since)
        done = progress[-1][1] - next((v for o, v in progress if o >= after[0]), 0.0)
        word = "never advances" if not rises else f"stops at line {place.line}"
        docket.add(
            "GYR403",
            State.BROKEN,
            (
                f"`{series.name}` {word} at {count(series.values[since])} while training goes on for {len(after)} more "
                f"steps ({count(done)} counted)"
            ),
            quantity=series.name,
            value=series.last,
            first=place,
            because=[Because(place, "last new version" if rises else "first reading"), Because(series.last_place, "still the same")],
            hint="publish a version after each update (or each n), and count it up where it is published",
            at_most=None if rises or len(after) >= docket.rules.thresholds.frozen_sure else Severity.WARNING,
        )
        return True
    return False


def _held_back(run: View, docket: Docket) -> bool:
    """The trainer counts versions up and hands none back."""
    own, out = run.series("trainer_version", least=3), run.series("published")
    if not own or not own[0].rises or not any("published" in f.gives for f in run.snapshot.files):
        return False
    last = out[0].last if out else own[0].first
    since = out[0].orders[-1] if out else -1
    newer = sum(o > since and v > last for o, v in zip(own[0].orders, own[0].values, strict=True))
    least = docket.rules.thresholds.frozen_updates if out else docket.rules.thresholds.late_load
    if newer < least or (out and out[0].rises and newer <= 3):
        return False
    place = out[0].last_place if out else own[0].first_place
    docket.add(
        "GYR403",
        State.BROKEN,
        (
            f"the trainer is at version {count(own[0].last)} (`{own[0].name}`) and has published "
            f"{'none after ' + count(last) if out else 'none'}: what it learns never reaches sampling"
        ),
        quantity="published",
        value=last if out else None,
        first=place,
        because=[Because(place, "last published"), Because(own[0].last_place, "trainer's version")],
        hint="publish a version after each update (or each n)",
    )
    return True


def _went_back(run: View, docket: Docket) -> None:
    for series in run.series(*_TRAINERS, *_SAMPLERS, "policy_version"):
        falls = [i for i in range(1, len(series)) if series.values[i] < series.values[i - 1]]
        if not falls or len(falls) > max(1, len(run.restarts)) or series.rises < 2:
            continue
        at = falls[0]
        before, after = series.values[at - 1], series.values[at]
        order = series.orders[at]
        rolled = [s for s in run.series("step", "update", "sampled") if s is not series and _fell(s, order)]
        restart = next((m for m in run.restarts if series.orders[at - 1] < m.order <= order), None)
        if rolled or (restart is not None and before - after <= 1):
            continue  # the whole run went back to a checkpoint, or began anew
        docket.add(
            "GYR415",
            State.BROKEN,
            f"`{series.name}` goes back from {count(before)} to {count(after)}"
            + (" at a restart" if restart else "")
            + ": data of the higher versions now looks newer than the policy",
            quantity=series.name,
            value=after,
            first=series.place(at),
            because=[
                Because(series.place(at - 1), "before"),
                Because(series.place(at), "after"),
                *([Because(restart.place, "restart")] if restart else []),
            ],
            hint="keep the version in the checkpoint and go on from it",
        )
        return


def _fell(series: Series, order: int) -> bool:
    at = series.index(order)
    return any(0 < i < len(series) and series.values[i] < series.values[i - 1] for i in (at, at + 1))


def _not_loaded(run: View, docket: Docket) -> None:
    late = docket.rules.thresholds.late_load
    published = next(
        (
            s
            for s in (*run.series(*_TRAINERS, least=2), *(s for s in run.series("policy_version", least=2) if s.side == "training"))
            if s.rises
        ),
        None,
    )
    if published is None:
        _left_behind(run, docket)
        return
    loaded = run.series(*_SAMPLERS, least=1) or tuple(s for s in run.series("policy_version") if s.side == "sampling")
    versions = int(published.last - published.first)
    if not loaded:
        gives = any("loaded" in f.gives for f in run.snapshot.files)
        if gives and versions >= late and run.sampled is not None and run.sampled.last > 0:
            docket.add(
                "GYR406",
                State.BROKEN,
                (f"trainer published version {count(published.last)} (`{published.name}`), no line says that the sampler loaded one"),
                quantity="loaded",
                value=None,
                first=published.first_place,
                because=[published.first_place, published.last_place],
                hint="let the sampler load the newest version between rollouts, and log it",
            )
        return
    for series in loaded:
        after = published.last - max(published.first, series.last)
        moved = series.rises > 0
        if series.path == published.path or run.snapshot.ordered:
            last_load = max((i for i in range(1, len(series)) if series.values[i] > series.values[i - 1]), default=0)
            since = [v for o, v in zip(published.orders, published.values, strict=True) if o > series.orders[last_load]]
            told = series.orders[-1] > series.orders[last_load]
            newer = len({v for v in since if v > series.values[last_load]})
            usual = _usual(series, published)
            if newer >= max(late, 3 * usual) and (told or not moved):
                place = series.place(last_load)
                docket.add(
                    "GYR406",
                    State.BROKEN,
                    (
                        f"sampler stays at version {count(series.values[last_load])} (`{series.name}`, line "
                        f"{place.line}) while {newer} newer versions are published, the last {count(published.last)}"
                    ),
                    quantity=series.name,
                    value=series.values[last_load],
                    first=place,
                    because=[Because(place, "last load"), Because(published.last_place, "newest version")],
                    hint=("let the sampler load the newest version between rollouts; check that the load reaches the module that acts"),
                )
                return
        elif not moved and series.count >= 2 and after >= late:
            docket.add(
                "GYR406",
                State.BROKEN,
                (f"sampler stays at version {count(series.last)} (`{series.name}`), the trainer published {count(published.last)}"),
                quantity=series.name,
                value=series.last,
                first=series.last_place,
                because=[series.last_place, published.last_place],
                hint="let the sampler load the newest version between rollouts",
            )
            return
    text = f"the sampler follows: `{loaded[0].name}` reaches {count(loaded[0].last)} of `{published.name}` {count(published.last)}"
    docket.add("GYR406", State.HOLDS, text, quantity=loaded[0].name, value=loaded[0].last)


def _left_behind(run: View, docket: Docket) -> None:
    """The sampler's version stands still while training goes on, in a log that does not tell the trainer's version."""
    progress = _progress(run)
    for series in run.series("loaded", least=3):
        rises = [i for i in range(1, len(series)) if series.values[i] > series.values[i - 1]]
        since = series.orders[rises[-1]] if rises else series.orders[0]
        steps = [o for (o, v), (_, before) in zip(progress[1:], progress, strict=False) if v > before]
        after = [o for o in steps if since < o <= series.orders[-1]]
        usual = most_between(steps, [series.orders[0], *(series.orders[i] for i in rises)])
        if len(after) < docket.rules.thresholds.frozen_updates or len(after) <= 3 * usual:
            continue
        place = series.place(rises[-1] if rises else 0)
        docket.add(
            "GYR406",
            State.BROKEN,
            f"sampler stays at version {count(series.last)} (`{series.name}`, line {place.line}) while training goes on for {len(after)} more steps",
            quantity=series.name,
            value=series.last,
            first=place,
            because=[Because(place, "last load" if rises else "first reading"), Because(series.last_place, "still the same")],
            hint="let the sampler load the newest version between rollouts; check that the load reaches the module that acts",
        )
        return


def _usual(loaded: Series, published: Series) -> int:
    """How many versions were usually published between two loads."""
    loads = [loaded.orders[i] for i in range(1, len(loaded)) if loaded.values[i] > loaded.values[i - 1]]
    return most_between(published.orders, loads) or 1
