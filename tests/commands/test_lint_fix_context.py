"""What the whole program tells a fix: who only samples, what others take from a file, and where a passed-on name is defined."""

from pathlib import Path

from gyrecheck.commands.lint_check import load_rules
from gyrecheck.commands.lint_fix import context_of
from gyrecheck.model.finding import Finding, Severity
from gyrecheck.program.program import Program
from gyrecheck.source.cache import Cache, digest
from gyrecheck.source.collect import collect
from gyrecheck.source.edits import plan_fixes
from gyrecheck.source.files import SourceFile
from gyrecheck.source.text_edit import apply_fixes
from gyrecheck.source.texts import Text

FILES = {
    "pkg/__init__.py": "from .api import make\n",
    "pkg/envs.py": "import gymnasium as gym\n\n\ndef make(name):\n    return gym.make(name)\n\n\nLIMIT = 3\n",
    "pkg/api.py": "from .envs import make as make, LIMIT\nfrom .learn import torch\n",
    "pkg/collect.py": "from pkg.envs import make\n\n\nclass Worker:\n    def go(self, policy):\n        env = make('x')\n        obs, _ = env.reset()\n"
    "        obs, reward, a, b, _ = env.step(policy(obs))\n\n\ndef main(policy):\n    Worker().go(policy)\n\n\nmain(None)\n",
    "pkg/learn.py": "import torch\nfrom . import make\nfrom .api import make as build, LIMIT\n\n\ndef fit(policy, loss):\n    loss.backward()\n    return build, make\n",
}


def contexts():
    rules = load_rules(Cache(None))
    texts = tuple(Text(SourceFile(Path(p), p), t.encode(), digest(t.encode()), t.encode()) for p, t in FILES.items())
    program = Program(collect(texts, Cache(None), 1)[0], rules.lexicon, rules.regions, rules.words)
    return {path: context_of(path, program) for path in FILES}


def test_context():
    """Methods that step an environment are samplers; names that others import are exported; only functions and classes have an origin."""
    known = contexts()
    assert "Worker.go" in known["pkg/collect.py"].samplers
    assert known["pkg/learn.py"].exported == {"torch"}
    assert known["pkg/learn.py"].module == "pkg.learn"
    assert known["pkg/learn.py"].origins == {"pkg.make": "pkg.envs.make", "pkg.api.make": "pkg.envs.make"}
    assert known["pkg/__init__.py"].package


def test_the_import_is_re_pointed_with_it():
    """A finding on an import that goes round is taken to the defining module, dots kept; a plain constant has no origin and stays."""
    source = FILES["pkg/learn.py"].encode()
    context = contexts()["pkg/learn.py"]
    found = [
        Finding("GYR201", "n", Severity.ERROR, "m", "pkg/learn.py", 2, 15),
        Finding("GYR201", "n", Severity.ERROR, "m", "pkg/learn.py", 3, 18),
    ]
    planned = plan_fixes("pkg/learn.py", source, found, context)
    edited = apply_fixes(source, [fix for f in planned for fix in f.fixes]).source.decode()
    assert edited.splitlines()[:4] == ["import torch", "from . import make", "from .envs import make as build", "from .api import LIMIT"]
