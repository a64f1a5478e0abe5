"""Watch in a real terminal (tmux) beside the reference loop with a fault switched on.

    python bench/watch_terminal.py [FAULT ...]

Without a name: every fault that the ledger sees. For each: seconds from the moment the engine, reading the same folder ten times a second,
first says the fault's code, to the moment the code stands on the terminal's screen. Promise: at most 2 s. The terminal is also resized
and, at the end, the watched folder is deleted: the screen must keep its figures and show no traceback.
"""

import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SESSION = "gyrecheck-watch-bench"
SOCKET = f"{tempfile.mkdtemp(prefix='gyrecheck-tmux-')}/socket"
LIMIT = 2.0


def tmux(*words):
    """A command to a tmux server of our own.

    Raises:
        subprocess.CalledProcessError: there is no terminal: nothing that is measured would be true.
    """
    return subprocess.run(["tmux", "-S", SOCKET, *words], capture_output=True, text=True, check=True).stdout


def expected():
    """Each fault that the ledger sees, with its code."""
    from reference_loop.faults import FAULTS

    found = {name: re.search(r"ledger[^:;]*: (GYR\d+)", fault.seen_by) for name, fault in FAULTS.items()}
    return {name: match[1] for name, match in found.items() if match}


def one(fault, code, seconds=90.0):
    """Whether the code came into the data, its delay on the screen after that, and whether the screen survived resizing and deletion."""
    from gyrecheck.rulebook.codes import load_codes
    from gyrecheck.screen.feed import RunFeed

    folder = Path(tempfile.mkdtemp(prefix="gyrecheck-bench-")) / "run"
    tmux("new-session", "-d", "-s", SESSION, "-x", "140", "-y", "40", f"{sys.executable} -m gyrecheck watch {folder}")
    loop = subprocess.Popen(
        [sys.executable, "-m", "reference_loop", "--run-dir", str(folder), "--fault", fault, "--total-steps", "400000", "--quiet"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    feed = RunFeed((str(folder),), load_codes())
    in_data = on_screen = None
    begin = time.monotonic()
    try:
        while time.monotonic() - begin < seconds and on_screen is None:
            if in_data is None:
                feed.folder_due = 0.0  # as soon as it is there, not when a watch would look
                if any(verdict.code == code for verdict in feed.poll().broken):
                    in_data = time.monotonic()
            if code in tmux("capture-pane", "-p", "-t", SESSION):
                on_screen = time.monotonic()
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
    delay = None if on_screen is None else on_screen - (on_screen if in_data is None else in_data)
    return in_data is not None or on_screen is not None, delay, "Traceback" not in last and "sampled" in last


def main():
    """One line a fault."""
    if shutil.which("tmux") is None:
        sys.exit("needs tmux")
    failed = False
    known = expected()
    tmux("new-session", "-d", "-s", "stays", "sleep 86400")  # a server that ends with its last session may not be gone when the next begins
    for fault in sys.argv[1:] or known:
        code = known[fault]
        there, delay, whole = one(fault, code)
        failed |= (there and (delay is None or delay > LIMIT)) or not whole
        said = "not in the data of this run" if not there else "not on the screen" if delay is None else f"{delay:.2f} s after the data"
        print(f"{fault}: {code} {said}; promise {LIMIT:.0f} s; screen after resizing and deletion {'kept' if whole else 'LOST'}")
    tmux("kill-server")
    sys.exit(failed)


if __name__ == "__main__":
    main()
