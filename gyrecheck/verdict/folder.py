"""A run folder's files against themselves, and against the log lines: lost, used twice, never produced, over age."""

from __future__ import annotations

from dataclasses import replace

from gyrecheck.model.finding import State, Verdict
from gyrecheck.model.folder import FolderBalance
from gyrecheck.model.snapshot import Place
from gyrecheck.rulebook.codes import Code
from gyrecheck.rulebook.thresholds import load_thresholds
from gyrecheck.verdict.judge import Judgement
from gyrecheck.verdict.ruling import Docket, Rules, count


def with_folder(
    judged: Judgement, folder: FolderBalance, codes: dict[str, Code], topology: str, chosen: frozenset[str] | None
) -> Judgement:
    """The judgement with the files' own verdicts first; the files' balance replaces the log's where the log cannot tell."""
    docket = Docket(Rules(codes, load_thresholds(), topology, chosen))
    _judge(folder, docket)
    own = {v.code for v in docket.verdicts}
    kept = tuple(v for v in judged.verdicts if not (v.code == "GYR507" and "GYR507" in own and (v.state is not State.BROKEN)))
    verdicts = sorted((*docket.verdicts, *kept), key=_rank)
    return replace(judged, verdicts=tuple(verdicts))


def _rank(verdict: Verdict) -> tuple[int, int]:
    return ({State.BROKEN: 0, State.UNDECIDED: 1, State.HOLDS: 2}[verdict.state], -verdict.severity.rank)


def _judge(folder: FolderBalance, docket: Docket) -> None:
    flying = f" + {count(folder.in_flight)} in flight" if folder.in_flight else ""
    terms = (
        f"{count(folder.sampled)} sampled = {count(folder.taken)} taken + {count(folder.dropped_stale)} stale + "
        f"{count(folder.dropped_other)} other + {count(folder.left)} left{flying}"
    )
    here = Place(folder.path, 0)
    if folder.residual == 0 and not folder.twice and not folder.missing and not folder.unknown:
        docket.add(
            "GYR507",
            State.HOLDS,
            f"conservation holds in the run folder's files, to the last trajectory: {terms}",
            quantity="unaccounted",
            value=0,
            unit="trajectory",
        )
    if folder.missing:
        lost = folder.residual
        docket.add(
            "GYR507",
            State.BROKEN,
            (
                f"{count(lost)} trajectories are in no file: {terms} + {count(lost)} unaccounted; {len(folder.missing)} "
                f"segments, the first {folder.missing[0]}"
            ),
            quantity="unaccounted",
            value=lost,
            unit="trajectory",
            first=Place(f"{folder.path}/journal", 0, None, folder.missing[0]),
            because=[here],
            hint="look for what deletes or claims segments without settling them",
        )
    if folder.twice:
        docket.add(
            "GYR510",
            State.BROKEN,
            f"{count(len(folder.twice))} trajectories are settled more than once, the first {folder.twice[0]}: {terms}",
            quantity="used_twice",
            value=len(folder.twice),
            unit="trajectory",
            first=Place(f"{folder.path}/ledger", 0, None, folder.twice[0]),
            because=[here],
            hint="claim by rename, and settle each id once",
        )
    if folder.unknown:
        docket.add(
            "GYR507",
            State.BROKEN,
            f"trajectories were consumed that no journal produced, the first {folder.unknown[0]}",
            quantity="unknown_ids",
            value=len(folder.unknown),
            unit="trajectory",
            first=Place(f"{folder.path}/ledger", 0, None, folder.unknown[0]),
            because=[here],
            hint="two runs share this folder, or a second producer writes no journal",
        )
    if folder.residual and not folder.missing and not folder.twice and not folder.unknown:
        docket.add(
            "GYR507" if folder.residual > 0 else "GYR510",
            State.BROKEN,
            (f"{count(abs(folder.residual))} trajectories {'unaccounted' if folder.residual > 0 else 'more than were sampled'}: {terms}"),
            quantity="unaccounted",
            value=folder.residual,
            unit="trajectory",
            first=here,
            because=[here],
        )
    if folder.over_age and folder.max_age is not None:
        oldest = max(folder.ages)
        docket.add(
            "GYR404",
            State.BROKEN,
            (
                f"{count(folder.over_age)} of {count(folder.taken)} were trained on above the limit of "
                f"{count(folder.max_age)} versions, the oldest at age {oldest}"
            ),
            quantity="age",
            value=oldest,
            unit="version",
            first=Place(f"{folder.path}/ledger", 0),
            because=[here],
            hint="the path that takes these passes the age check by",
        )
    elif folder.ages and min(folder.ages) < 0:
        docket.add(
            "GYR408",
            State.BROKEN,
            f"trajectories bear versions above the trainer's (age {min(folder.ages)})",
            quantity="age",
            value=min(folder.ages),
            unit="version",
            first=Place(f"{folder.path}/ledger", 0),
            because=[here],
            hint="count the version up in one place, and stamp data with the weights that acted",
        )
