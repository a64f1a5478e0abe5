"""What a log's own names mean: `rules/logs/generic.toml` as lookup tables. A name that is not understood gives nothing.

The words of a name are cut at case changes and at everything that is no letter or digit; nouns give the unit, fillers are set
aside, and the rest must stand in the table: `num_env_steps_sampled_lifetime` is `sampled`, in steps, cumulative, of the stream `env`.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import cache, cached_property, lru_cache
from pathlib import Path

from gyrecheck.model.events import Key, Unit
from gyrecheck.rulebook.generic_names import GenericRules
from gyrecheck.rulebook.locate_rules import rule_files
from gyrecheck.rulebook.log_formats import load_terms
from gyrecheck.rulebook.toml_table import load_table

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|@")
_UNITLESS = frozenset(("gauge", "version", "setting", "axis"))


class Aliases:
    """The lookup: `understand(name, noun)`."""

    def __init__(self, rules: GenericRules) -> None:
        self.rules = rules
        self._total, self._step = frozenset(rules.total_words), frozenset(rules.step_words)
        self._filler = frozenset(rules.filler_words)
        self._qualifiers = frozenset(rules.qualifiers.words)
        self._kinds = {name: rule.kind for name, rule in load_terms().terms.items()}
        self._exact: dict[tuple[str, ...], str] = {}
        for term, names in rules.names.items():
            for name in names:
                self._exact.setdefault(tuple(name.split()), term)
        for words, term in rules.versions.names():
            self._exact.setdefault(words, term)
        self._lean = {self._leanest(words): term for words, term in reversed(self._exact.items())}
        for bare in [
            words for words in self._lean if len(words) <= 1 and set(words) <= {*rules.weak.words, *rules.weak.never, *rules.nouns}
        ]:
            del self._lean[bare]
        self._sides = frozenset((*rules.versions.sampler, *rules.versions.trainer, "replica"))
        self._weak = {tuple(name.split()): term for term in ("sampled", "taken") for name in getattr(rules.weak, term)}
        self._bare = {(word,) for word in rules.weak.bare}
        self._weak_words = frozenset(rules.weak.words)
        self._states = frozenset(rules.weak.states)
        self._verbs = {tuple(verb.split()) for verb in rules.drops.verbs}
        self._stale = {tuple(word.split()) for word in rules.drops.stale_words}
        nouns = frozenset(rules.nouns)
        self._families = tuple(
            (
                one,
                tuple(self._listed(part) for part in one.need),
                (self._listed(one.may) | self._filler | self._total | nouns) - self._listed(one.never),
            )
            for one in rules.families
        )
        self.nouns = frozenset(noun.encode() for noun in nouns)
        """Words that say what is counted; like all below in lower case and as bytes, for lines that nobody has decoded yet."""

    @cached_property
    def loose(self) -> frozenset[bytes]:
        """Words that need a noun beside them."""
        return frozenset(word.encode() for word in self._loose)

    @property
    def _loose(self) -> frozenset[str]:
        return self._weak_words | {w for words, term in self._exact.items() if term == "done" for w in words}

    @cached_property
    def needed(self) -> dict[bytes, tuple[frozenset[bytes], ...]]:
        """By the rarest word of a name, the words that a line must hold for that name."""
        every = [*self._exact, *self._weak, *self._verbs]
        common = Counter(word for words in every for word in words)
        loose, aside = self._loose, self._filler | self._total
        needed: dict[str, set[frozenset[str]]] = {}
        for words in every:
            kept = frozenset(words) - aside
            if kept and not (len(kept) == 1 and kept <= loose):
                needed.setdefault(min(kept, key=lambda w: (common[w], w)), set()).add(kept)
        return {word.encode(): tuple(frozenset(w.encode() for w in one) for one in sets) for word, sets in needed.items()}

    @cached_property
    def kindred(self) -> tuple[tuple[frozenset[bytes], ...], ...]:
        """Of each family the sets of words of which a line must hold one each."""
        return tuple(tuple(frozenset(w.encode() for w in part) for part in need) for _, need, _ in self._families)

    def mapped(self, name: str, key: str) -> Key | None:
        """The key that `--map NAME=key` declares; None when `name` is no term."""
        term, _, reason = self.rules.map_names.get(name, name).partition(" ")
        if term not in self._kinds:
            return None
        counted = self._kinds[term] not in _UNITLESS
        unit = next((self.rules.nouns[w.lower()] for w in _WORD.findall(key) if w.lower() in self.rules.nouns), Unit.SAMPLE)
        if term in {"update", "sample_call", "update_call", "zero_grad"}:
            unit = Unit.CALL
        counting = "yes" if self._kinds[term] in {"level", "axis"} else "detect"
        return Key(key, term, unit if counted else Unit.SAMPLE, counting, reason, term == "dropped_other")

    def _leanest(self, words: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(w for w in words if w not in self._filler and w not in self._total)

    def understand(self, name: str, noun: str = "", config: bool = False) -> Key | None:
        """The key behind a name as logged; `noun` is a word that followed the number (`done 64 prompts`). None: not understood.

        `config` is true for a line that states settings: there `buffer size` is a capacity, not a level.
        """
        path = [part for part in re.split(r"[/]", name) if part]
        tails = [name] if len(path) < 2 else [name, path[-1], *(["/".join(path[-2:])] if len(path) > 2 else [])]
        if len(tails) > 1 and path[-1].lower() in self._states:
            tails = [name]  # `queue/empty` is about the queue
        for tail in tails:
            key = self._one(tail, name, noun, config)
            if key is not None:
                return key
        return None

    def _one(self, tail: str, name: str, noun: str, config: bool) -> Key | None:
        words = tuple(w.lower() for w in _WORD.findall(tail.replace("qsize", "Qsize ")))
        if not words or len(words) > 8:
            return None
        counting = "yes" if self._total & set(words) else "detect"
        unit, stream, bare = Unit.SAMPLE, "", []
        nouns = self.rules.nouns
        for word in words:
            if word in nouns:
                unit = nouns[word]
            elif word in self._qualifiers:
                stream = word
        if noun in nouns and unit is Unit.SAMPLE:
            unit = nouns[noun]
        has_noun = noun in nouns or any(w in nouns for w in words)
        if apart := set(words) & set(self.rules.qualifiers.apart):
            stream = min(apart)
        term, reason = self._exact.get(words, ""), ""
        if not term and ("per" in words or words[0] in self.rules.not_counted):
            term = self._family(words, has_noun=has_noun, config=config, first=words[0])
            if not term:
                return None
        bare = [w for w in words if w not in nouns and w not in self._filler and w not in self._total and w not in self._qualifiers]
        full = [w for w in words if w not in self._filler and w not in self._total]
        if not term:
            term, reason = self._dropped(tuple(w for w in words if w not in nouns and w not in self._total and w not in self._qualifiers))
        if not term:
            term, reason = self._dropped(tuple(w for w in bare if w not in self._step))
        if not term:
            term = self._lean.get(tuple(full), "") or self._exact.get(tuple(bare), "") or self._lean.get(tuple(bare), "")
        if not term and (has_noun or (words in self._bare and (not noun or self._counts(noun)))):
            term = self._weak.get(tuple(w for w in words if w not in nouns and w not in self._total and w not in {"of", "the", "num"}), "")
        if not term and (short := tuple(w for w in bare if w not in self._step)) and len(short) < len(bare):
            term = self._exact.get(short, "") or self._lean.get(short, "")
            counting = "no" if term else counting
        if not term:
            term = self._family(words, has_noun=has_noun, config=config)
        if term == "left" and config and words[-1] in {"size", "max", "limit"}:
            term = "capacity"
        if (
            config
            and (term in {"sampled", "step", "counted"} or not term)
            and words[0] in {"total", "max"}
            and has_noun
            and len(words) <= 3
        ):
            term = "total_steps"
        if not term:
            return self._numbered(words, name, noun, config)
        kind = self._kinds[term]
        if term == "update" and set(words) <= {"step", "steps", "train", "training", "global", "total"} and "train" not in words:
            term, kind = "step", "axis"
        if term == "max_age" and noun in nouns:
            unit = nouns[noun]  # `rollouts older than 4 steps`: steps are the limit's unit
        if kind in _UNITLESS or term in {"update", "sample_call", "update_call", "zero_grad"}:
            unit = Unit.CALL if kind == "counter" else unit
            stream = stream if stream in self.rules.qualifiers.apart else ""
        return Key(
            name, term, unit, "yes" if kind in {"level", "axis"} else counting, reason, term == "dropped_other", "", stream, sure=False
        )

    def _numbered(self, words: tuple[str, ...], name: str, noun: str, config: bool) -> Key | None:
        """`engine0_version`: a version of one of several; a counter of one of several is no counter of all."""
        plain = tuple(w for at, w in enumerate(words) if not (w.isdigit() and at and words[at - 1] in self._sides))
        key = self._one(" ".join(plain), name, noun, config) if len(plain) < len(words) else None
        return key if key is not None and self._kinds[key.term] == "version" else None

    def _counts(self, word: str) -> bool:
        """Whether a word after a number opens the next count, rather than naming what this one counts."""
        return (word,) in self._exact or (word,) in self._verbs or word in self._weak_words

    def _listed(self, words: tuple[str, ...]) -> frozenset[str]:
        return frozenset(w for word in words for w in (self.rules.words[word[1:]] if word[:1] == "@" else (word,)))

    def _family(self, words: tuple[str, ...], *, has_noun: bool, config: bool, first: str = "") -> str:
        """The term of the first family that holds all the words (and needs the word `first`); empty for none."""
        said = frozenset(words)
        for one, need, allowed in self._families:
            if (one.noun and not has_noun) or (one.config and not config):
                continue
            if first and self._kinds[one.term] != "gauge" and not any(first in part for part in need):
                continue  # somebody's wish or memory of a count; `old_logp_diff` measures something
            if all(part & said for part in need) and said <= allowed.union(*need):
                return one.term
        return ""

    def _dropped(self, words: tuple[str, ...]) -> tuple[str, str]:
        """Term and reason of a way out; empty when it is none."""
        for size in (2, 1):
            for at in range(len(words) - size + 1):
                if words[at : at + size] not in self._verbs:
                    continue
                rest = words[:at] + words[at + size :]
                verb = " ".join(words[at : at + size])
                if not rest:
                    term, _, reason = self.rules.drops.alone.get(verb, "dropped ").partition(" ")
                    return term, reason
                if rest in self._stale or all((w,) in self._stale for w in rest):
                    return "dropped_stale", "stale"
                if verb in self._states:
                    continue  # `queue empty` tells how the queue was
                known = [self.rules.drops.reasons[w] for w in rest if w in self.rules.drops.reasons]
                others = [w for w in rest if w not in self.rules.drops.reasons and (w,) not in self._verbs and (w,) not in self._stale]
                if known and len(others) <= 1:
                    return "dropped_other", known[0]
                if all((w,) in self._verbs for w in rest):
                    both = [self.rules.drops.alone.get(w, "dropped ").partition(" ") for w in (verb, *rest)]
                    best = next((b for b in both if b[0] == "dropped_stale"), next((b for b in both if b[2]), both[0]))
                    return best[0], best[2]
        return "", ""


@cache
def load_aliases(extra: Path | None = None) -> Aliases:
    """The generic names; a project's `logs/generic.toml` replaces ours as a whole.

    Raises:
        RuleError: the file does not load.
    """
    files = [path for path in rule_files("logs", extra) if path.stem == "generic"]
    return Aliases(load_table(files[-1], GenericRules))


@lru_cache(maxsize=4096)
def understand(name: str, noun: str = "", config: bool = False, extra: Path | None = None) -> Key | None:
    """`Aliases.understand`, remembered: the same name gives the same `Key` object."""
    return load_aliases(extra).understand(name, noun, config)
