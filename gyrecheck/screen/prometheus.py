"""The same snapshot as Prometheus text: a view on loopback, never the truth; counters end in `_total`, units stand in the names."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from gyrecheck.model.errors import GyreError
from gyrecheck.model.finding import State
from gyrecheck.screen.view import View

STATES = {State.HOLDS: 0, State.UNDECIDED: 1, State.BROKEN: 2}


class ViewCollector(Collector):
    """Turns the newest view into metrics at each scrape."""

    def __init__(self, newest: Callable[[], View]) -> None:
        self._newest = newest

    def collect(self) -> Iterator[Metric]:
        """All metrics of one view."""
        view = self._newest()
        counts = CounterMetricFamily("gyrecheck_count", "Counters of the run, exact totals.", labels=["run", "counter", "unit"])
        for row in view.counters:
            counts.add_metric([view.run, row.name, row.unit], row.total)
        yield counts
        balance = GaugeMetricFamily("gyrecheck_balance", "Terms of the conservation sum and its residual.", labels=["run", "term", "unit"])
        for term in view.balance:
            if term.value is not None:
                balance.add_metric([view.run, term.name, view.balance_unit], term.value)
        yield balance
        state = GaugeMetricFamily("gyrecheck_verdict_state", "0 holds, 1 undecided, 2 broken.", labels=["run", "code", "name", "severity"])
        worst: dict[tuple[str, str, str], int] = {}
        for verdict in view.verdicts:
            key = (verdict.code, verdict.name, verdict.severity.value)
            worst[key] = max(worst.get(key, 0), STATES[verdict.state])
        for (code, name, severity), value in worst.items():
            state.add_metric([view.run, code, name, severity], value)
        yield state
        if view.age is not None:
            yield GaugeMetricFamily("gyrecheck_last_line_age_seconds", "Seconds since the last line was read.", value=view.age)


def serve(newest: Callable[[], View], port: int, address: str = "127.0.0.1") -> Callable[[], None]:
    """Serve until the returned function is called.

    Raises:
        GyreError: the port is taken.
    """
    registry = CollectorRegistry()
    registry.register(ViewCollector(newest))
    try:
        server, thread = start_http_server(port, addr=address, registry=registry)
    except OSError as error:
        raise GyreError(
            f"--prometheus {port}: cannot listen on {address}:{port} ({error.strerror or error})", hint="give a free port"
        ) from error

    def stop() -> None:
        server.shutdown()
        server.server_close()
        if isinstance(thread, threading.Thread):
            thread.join(timeout=5)

    return stop
