# ruff: noqa: INP001 - the name is Python's, the folder stands on PYTHONPATH
"""First on PYTHONPATH of a hooked program and of its children: starts the hook, then lets the program's own sitecustomize run.

Whatever goes wrong here is one line on stderr at most; the program starts as if nothing had been there.
"""

import os
import sys


def _start() -> None:
    folder = os.environ.get("GYRECHECK_RUN_DIR", "")
    root = os.environ.get("GYRECHECK_ROOT", "")
    if not folder or sys.version_info < (3, 10):
        return
    known = "gyrecheck" in sys.modules
    if root and not known:
        sys.path.insert(0, root)
    try:
        from gyrecheck.hook import launch
    finally:
        if root and not known and root in sys.path:
            sys.path.remove(root)
    launch.start(folder)


def _chain() -> None:
    mine = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [path for path in sys.path if os.path.abspath(path or ".") != mine]
    found = (finder.find_spec("sitecustomize", None) for finder in sys.meta_path if hasattr(finder, "find_spec"))
    spec = next((spec for spec in found if spec is not None), None)
    if spec is not None and spec.loader is not None:
        import importlib.util

        module = importlib.util.module_from_spec(spec)
        sys.modules["sitecustomize"] = module
        spec.loader.exec_module(module)


try:
    _start()
except Exception as _error:
    sys.stderr.write(f"gyrecheck: not hooked: {type(_error).__name__}: {_error}\n")
_chain()
