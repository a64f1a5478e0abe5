"""Watch in a real terminal (tmux) beside the reference loop with a fault switched on.

    python bench/watch_terminal.py [FAULT ...]

For each fault: seconds from the moment the engine, reading the same folder, first calls the run broken, to the moment the code stands
on the terminal's screen. Promise: at most 2 s. The terminal is also resized and, at the end, the watched folder is deleted: the screen
must keep its figures and show no traceback.
"""

import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

FAULTS = ("weights-not-loaded", "stale-bypass", "filter-rejects-all")
SESSION = "gyrecheck-watch-bench"
LIMIT = 2.0


def tmux(*words):
    return subprocess.run(["tmux", *words], capture_output=True, text=True, check=False).stdout


def one(fault, seconds=90.0):
    """Delay of the first broken verdict, its code, and whether the screen survived resizing and deletion."""
    from gyrecheck.model.finding import Severity
    from gyrecheck.rulebook.codes import load_codes
    from gyrecheck.screen.feed import RunFeed

    folder = Path(tempfile.mkdtemp(prefix="gyrecheck-bench-")) / "run"
    loop = subprocess.Popen(
        [sys.executable, "-m", "reference_loop", "--run-dir", str(folder), "--fault", fault, "--total-steps", "400000", "--quiet"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    tmux("new-session", "-d", "-s", SESSION, "-x", "140", "-y", "40", f"{sys.executable} -m gyrecheck watch {folder}")
    feed = RunFeed((str(folder),), load_codes())
    in_data, on_screen, begin = {}, {}, time.monotonic()
    try:
        while time.monotonic() - begin < seconds and not on_screen:
            for verdict in feed.poll().broken:
                if verdict.severity is not Severity.NOTE:
                    in_data.setdefault(verdict.code, time.monotonic())
            shown = tmux("capture-pane", "-p", "-t", SESSION)
            now = time.monotonic()
            on_screen |= {code: now for code in in_data if code in shown and code not in on_screen}
            time.sleep(0.1)
        for at in range(10):
            tmux("resize-window", "-t", SESSION, "-x", str(70 + 13 * at), "-y", str(20 + 3 * at))
            time.sleep(0.1)
    finally:
        loop.terminate()
        loop.wait()
        feed.close()
    shutil.rmtree(folder.parent, ignore_errors=True)
    time.sleep(3)
    last = tmux("capture-pane", "-p", "-t", SESSION)
    tmux("kill-session", "-t", SESSION)
    code = next(iter(on_screen), "")
    return (on_screen[code] - in_data[code] if code else None), code or ",".join(in_data), "Traceback" not in last and "sampled" in last


def main():
    """One line a fault."""
    if shutil.which("tmux") is None:
        sys.exit("needs tmux")
    failed = False
    for fault in sys.argv[1:] or FAULTS:
        delay, code, whole = one(fault)
        failed |= delay is None or delay > LIMIT or not whole
        said = "no breach on the screen" if delay is None else f"{delay:.2f} s after the data"
        print(f"{fault}: {code} {said}; promise {LIMIT:.0f} s; screen after resizing and deletion {'kept' if whole else 'LOST'}")
    sys.exit(failed)


if __name__ == "__main__":
    main()
