"""Names and numbers in free text: `key=3`, `key: 3`, `'key': '3'`, `lag_mean 3.00`, `12 rollouts in`, `weights 398 published`.

`plan` reads a line once and says which of its numbers means what; lines of the same shape (the same text without digits) share a
plan, so most lines cost one dictionary look-up. Numbers of forms that cannot be trusted are no numbers (`12..40`, `1:02:03`, `0x1F`
is one, `2.8s` is none).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache, lru_cache

from gyrecheck.model.events import Key
from gyrecheck.rulebook.aliases import load_aliases, understand
from gyrecheck.rulebook.log_formats import load_terms
from gyrecheck.stream.spelling import NUMBER, OF_VERSION, OLDEST

_TOKEN = re.compile(
    rf"(?P<clock>\d{{1,4}}:\d\d(?::\d\d)?(?:\.\d+)?|\d+\.\.\.?\d+|\b\d{{4}}-\d\d-\d\d\b|\b\d+(?:\.\d+)?(?:ms|s|it/s|GB|MB|x)\b(?!\w))"
    rf"|(?P<number>{NUMBER.pattern})(?P<percent>\s?%)?"
    r"|(?P<word>[^\W\d_](?:[\w./\-]*\w)?|_\w+)|(?P<sep>[=:])|(?P<of>/)|(?P<stop>[,|;(){}\[\]│┃·•>]|\s-+\s|--+)"
)
_SPEAKERS = frozenset(
    ("trainer", "learner", "optimizer", "optimiser", "opt", "updater", "sampler", "actor", "collector", "sim", "gen", "engine")
)
"""`learner: 54 unrolls learned from` is about what was learned from, not about a count of learners."""
_TOTALS = re.compile(
    r"(?i)\b(?:totals?|cumulative(?:ly)?|so far|lifetime|overall|all told)\b[^=:|;,]{0,24}:(?=\s*[a-z])"
    r"|\b(?:event|type|kind|tag|record|msg|message|scope)\s*[:=]\s*[\w ]*?(?:totals?|cumulative|lifetime|so far|overall)\b(?=,)"
)
_SINKS = frozenset(("dropped", "dropped_other", "dropped_stale"))
_STATISTICS = frozenset(
    (
        "mean",
        "avg",
        "average",
        "max",
        "top",
        "peak",
        "worst",
        "highest",
        "min",
        "std",
        "p50",
        "p95",
        "p99",
        "median",
        "last",
        "total",
        "sum",
        "size",
        "len",
        "length",
        "depth",
        "fill",
    )
)
_SPLIT_NAMES = frozenset(("published", "loaded", "policy_version", "trainer_version", "sample_version", "done"))
"""Terms whose names may close round the number: `weights 398 published`, `done 64 prompts`."""
EVALUATION = frozenset(("eval", "evaluation", "validation", "val"))
"""Words that set a line of their own apart."""
_ROOM = frozenset(("capacity", "batch_size", "total_steps"))
_SHARES = frozenset(("flat_groups", "clip_fraction"))

Lookup = Callable[[str, str, bool], Key | None]
"""Name, the noun after the number, whether the line states settings -> the key, or None."""

Plan = tuple[tuple[int, Key, float], ...]
"""Which number (0-based among all of the line) gives which key, and its factor."""


def plan(text: str, look: Lookup = understand) -> Plan:
    """Which numbers of a prepared line mean what."""
    found = _plan(text, False, look)
    kinds = [_kind(key) for _, key, _ in found]
    if "setting" in kinds:
        other = _plan(text, True, look)
        meant = [_kind(key) for _, key, _ in other]
        if meant.count("setting") * 2 >= len(meant) - meant.count("axis"):
            return other
    return found


def _kind(key: Key) -> str:
    return load_terms().terms[key.term].kind


def _plan(text: str, config: bool, look: Lookup) -> Plan:
    out: list[tuple[int, Key, float]] = []
    before: list[str] = []
    segment_opens_with_number = False
    fresh = True  # nothing but breaks since the segment began
    seen_separator = False
    starts = {match.start(): at for at, match in enumerate(NUMBER.finditer(text))}
    tokens = list(_TOKEN.finditer(text))
    after_slash = False
    stem: list[str] = []  # `versions apart mean 1.2, max 3`: of these too
    heading: list[str] = []  # `lag: mean=1.2 max=3` is about the lag
    several: tuple[Key, int] | None = None  # a side's version that may stand there for each of its processes
    opened = 0  # readings before the parts of a number in brackets
    total = _TOTALS.search(text)
    totals = total.end() if total else 0  # `totals after 3: sampled=96`: whatever each line adds, these are running totals
    games = any(token.lastgroup == "word" and token[0].lower() in _words()[3] for token in tokens)
    elsewhere = _opens_with(tokens, _words()[2])
    apart = _opens_with(tokens, EVALUATION)  # `evaluation: sampled 400` is no part of training's numbers
    if apart:
        plain = look

        def look(name: str, noun: str, config: bool) -> Key | None:
            return plain(f"{apart} {name}", noun, config)

    for at, token in enumerate(tokens):
        kind = token.lastgroup
        if kind == "word":
            if seen_separator:
                heading = before or heading
                before, fresh = [], True
            before.append(token[0])
            seen_separator = False
        elif kind in {"sep", "of"}:
            seen_separator = kind == "sep"
            after_slash = kind == "of"
            continue
        elif kind in {"stop", "clock"}:
            if kind == "clock" and not fresh:
                before = []
                continue
            if token[0].strip() in {"{", "[", "("} and before:
                heading = before
            elif token[0].strip() in {"|", ";", "}", "]", ")"}:
                heading = []
            if token[0] == "(" and tokens[at - 1].lastgroup == "number" and out and out[-1][1].term in _SINKS:
                opened = len(out)  # `removed 41 (flat 40, aborted 1)`: parts of the 41
            elif token[0] == ")" and opened:
                parts = sum(one.lastgroup == "number" for one in tokens[_last_open(tokens, at) : at])
                if any(key.term == "taken" for _, key, _ in out[opened:]):
                    del out[opened - 1]  # `removed 512 (expired 100, trained 412)`: out of the store, which is no loss
                elif sum(key.term in _SINKS for _, key, _ in out[opened:]) < parts:
                    out[opened:] = [item for item in out[opened:] if item[1].term not in _SINKS]
                opened = 0
            before, fresh, seen_separator, segment_opens_with_number = [], True, False, False
        elif kind in {"number", "percent"}:
            index = starts.get(token.start("number"))
            if after_slash or index is None:
                after_slash = False
                before = []
                continue
            after, closed = _after(tokens, at)
            if not before and fresh and not out and _is_index(tokens, at):
                fresh = True  # `3: episodes collected 192`: which line it is
                continue
            if not before and fresh:
                segment_opens_with_number = True
            elif before and seen_separator:
                segment_opens_with_number = False  # `12 prompts=64 flat=4`: names stand before their numbers after all
            if not before and len(after) > 1 and not closed and not _words_follow_next(tokens, at):
                after, segment_opens_with_number = after[:1], False  # `4096 steps with weights 7`: the later words name the last number
                key = _longest(after, "", config, look, from_left=True)
                if key is not None:
                    out.append((index, key, 1.0))
                before, seen_separator, fresh = [], False, False
                continue
            if not before and out and several is not None and _goes_on(tokens, at):
                several = (several[0], several[1] + 1)  # `engines at v8 v8 v3 v8`: each of them
                out.append((index, _same(replace(several[0], name=f"{several[0].name} {several[1]}")), 1.0))
                continue
            several = None
            full = before
            if not before and heading and tokens[at - 1][0] == "[":
                full = before = heading  # `engine_versions: [8, 8, 3, 8]`
                segment_opens_with_number = False
            if len(before) == 1 and before[0].lower() in _STATISTICS:
                full = [*(heading or stem), *before]
            elif len(before) == 1 and heading and (side := look(" ".join([*heading, *before]), "", config)) and _kind(side) == "version":
                full = [*heading, *before]  # `policy: {trainer: 12, rollout: 11}`
            stem = full[:-1] if len(full) > 1 and full[-1].lower() in _STATISTICS else []
            if not after and len(heading) == 1 and heading[0].lower() in _words()[0]:
                after, closed = [*heading], True  # `groups: used 18`: of these
            key = _key(full, after, closed, seen_separator, segment_opens_with_number, config, look)
            if key is not None and after and _counts_others(tokens, at, key):
                key = _longest(after, "", config, look, from_left=True)
            spelled = text[token.start("number") - 1 : token.start("number")]
            if spelled in {OF_VERSION, OLDEST}:
                key = _of_version(key, full, spelled, config, look)
            if key is not None and totals and token.start() >= totals and key.cumulative == "detect" and _kind(key) == "counter":
                key = _same(replace(key, cumulative="yes"))
            if key is not None and (key.reason == "lost" or key.term == "drawn") and games:
                key = None
            if key is not None and elsewhere and _kind(key) in {"counter", "level"}:
                key = None
            if key is not None:
                out.append((index, key, 0.01 if token["percent"] and key.term in _SHARES else 1.0))
                several = (key, 1) if key.term == "loaded" else None
            before, seen_separator, fresh = [], False, False
        after_slash = False
    return tuple(out)


def _goes_on(tokens: list[re.Match[str]], at: int) -> bool:
    """Whether a number follows on another with nothing but a comma between."""
    back = at - 2 if tokens[at - 1][0] == "," else at - 1
    return back >= 0 and tokens[back].lastgroup == "number"


def _last_open(tokens: list[re.Match[str]], at: int) -> int:
    """Index of the bracket that the one at `at` closes."""
    return max(i for i in range(at) if tokens[i][0] == "(")


@cache
def _words() -> tuple[frozenset[str], ...]:
    """What a ledger counts, what a run has many of that none counts, first words of lines that count neither, words of games won, states."""
    rules = load_aliases().rules
    aside = rules.qualifiers
    return tuple(frozenset(some) for some in (rules.nouns, rules.others, aside.elsewhere, aside.games, rules.weak.states))


@lru_cache(maxsize=1 << 16)
def _same(key: Key) -> Key:
    """The one object for all equal keys: readings of one key are put together by it."""
    return key


def _counts_others(tokens: list[re.Match[str]], at: int, key: Key) -> bool:
    """Whether the number is of something else than its name says: `pool ready: 8 workers`."""
    if (
        at + 1 >= len(tokens)
        or tokens[at + 1][0].lower() not in _words()[1]
        or not (_kind(key) in {"counter", "level", "version"} or key.term in _ROOM)
    ):
        return False
    return at + 2 >= len(tokens) or tokens[at + 2].lastgroup not in {"number", "percent", "sep"}


def _of_version(key: Key | None, before: list[str], spelled: str, config: bool, look: Lookup) -> Key | None:
    """What a number spelled as a version tells: `trained with v7` is no count of what was trained."""
    if key is None or _kind(key) not in {"version", "axis", "setting"}:
        key = look(" ".join([*before[-4:], "version"]), "", config) if before else None
    if key is not None and spelled == OLDEST and key.term == "sample_version":
        return _same(replace(key, term="oldest_version"))
    return key


def _opens_with(tokens: list[re.Match[str]], words: frozenset[str]) -> str:
    """The word with which a whole line says what it is about (`eval: …`, `[sync] …`), if it is one of these; empty for none."""
    first = next((at for at, token in enumerate(tokens) if token.lastgroup == "word"), len(tokens))
    if first + 1 >= len(tokens) or tokens[first][0].lower() not in words:
        return ""
    return tokens[first][0].lower() if tokens[first + 1][0] in ":|]" else ""


def _is_index(tokens: list[re.Match[str]], at: int) -> bool:
    """Whether a line's first number is closed by a colon and followed by a word."""
    rest = tokens[at + 1 : at + 3]
    return at == 0 and len(rest) == 2 and rest[0][0] == ":" and rest[1].lastgroup == "word"


def _after(tokens: list[re.Match[str]], at: int) -> tuple[list[str], bool]:
    """Words after a number, and whether a break or the line's end closes them (rather than another number or a separator)."""
    words: list[str] = []
    for token in tokens[at + 1 : at + 7]:
        if token.lastgroup == "word":
            words.append(token[0])
        elif token.lastgroup == "stop":
            return words, True
        elif token.lastgroup == "sep":
            return words, token[0] == ":"
        else:
            return words, False
    return words, True


def _words_follow_next(tokens: list[re.Match[str]], at: int) -> bool:
    """Whether words stand behind the next number of the segment."""
    for later in range(at + 1, len(tokens)):
        if tokens[later].lastgroup in {"number", "percent"}:
            return bool(_after(tokens, later)[0])
        if tokens[later].lastgroup != "word":
            return True
    return True


def _key(before: list[str], after: list[str], closed: bool, separated: bool, opens: bool, config: bool, look: Lookup) -> Key | None:
    if opens or not before:
        return _longest(after, "", config, look, from_left=True) if after else None
    noun = after[0].lower() if after else ""
    if separated:
        if closed and len(after) > 1 and len(before) == 1 and before[0].lower() in _SPEAKERS:
            told = _longest(after, "", config, look, from_left=True)
            if told is not None:
                return told
        return _longest(before, noun if closed else "", config, look) or (
            _longest(after, "", config, look, from_left=True) if closed else None
        )
    if after and closed and len(before) + len(after) <= 6:
        both = look(" ".join([*before, *after]), "", config)
        if both is not None and both.term in _SPLIT_NAMES:
            return both
    found = _longest(before, noun, config, look)
    if found is None and len(after) > 1:  # `at most 3 versions between actor and learner`
        both = look(" ".join([*before[-4:], *after[:3]]), "", config)
        found = both if both is not None and both.term == "max_age" else None
    return found


def _longest(words: list[str], noun: str, config: bool, look: Lookup, *, from_left: bool = False) -> Key | None:
    """The longest run of words that is understood: a suffix before a number, a prefix (or the whole) after it."""
    words = words[:6] if from_left else words[-6:]
    while len(words) > 1 and words[0].isupper() and len(words[0]) > 2:
        words = words[1:]
    for size in range(len(words), 0, -1):
        part = words[:size] if from_left else words[-size:]
        if size == 1 < len(words) and part[0].lower() in _words()[4]:
            return None
        key = look(" ".join(part), noun, config)
        if key is not None:
            return key
    return None
