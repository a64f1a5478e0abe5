"""Mark and count the two sides inside a running program, for about a tenth of a microsecond a call.

Standard library and the two lowest floors only; no thread, no lock, and no exception that reaches the program.

    from gyrecheck.hook import sampling, training

    @sampling
    def rollout(policy, env): ...

    @training
    def update(batch): ...

`gyrecheck run -- python train.py` gives the run folder; without one the counts stay in this process.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gyrecheck.hook.marks import ledger, load, log_calls, publish, sampling, tag, training

__all__ = ["ledger", "load", "log_calls", "publish", "sampling", "tag", "training"]


def __getattr__(name: str) -> object:
    """The marks, on first use: every Python process of a hooked run imports this package, and most mark nothing."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from gyrecheck.hook import marks

    for known in __all__:
        globals()[known] = getattr(marks, known)
    return globals()[name]
