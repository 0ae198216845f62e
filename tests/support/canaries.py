"""Canaries: words that stand for mail, and all outputs of the product in which none of them may occur."""

import contextlib
import io
import logging
import re
from collections.abc import Generator, Iterable

import structlog

from postroom.settings.sections import LogSettings
from postroom.telemetry.logs import configure_logging
from support.otlp import OtlpCollector, running_collector

WORD = re.compile(r"kanarie\d{5}[a-z]*")


class Canaries:
    """All words that were planted, and what each stands for."""

    def __init__(self) -> None:
        self._planted: dict[str, str] = {}

    def word(self, what: str) -> str:
        """A word that occurs nowhere else; it is found in any company and in any case."""
        word = f"kanarie{len(self._planted):05d}{what}"
        self._planted[word] = what
        return word

    def note(self, what: str, text: str) -> str:
        """Something that others made up and that must not be found either, such as an id or a token."""
        self._planted[text.lower()] = what
        return text

    def found_in(self, output: str | bytes, allowed: Iterable[str] = ()) -> set[str]:
        """What was found, and what it stands for."""
        text = (output if isinstance(output, str) else output.decode("latin-1")).lower()
        for each in allowed:
            text = text.replace(each.lower(), "")
        words = set(WORD.findall(text))
        words |= {word for word in self._planted if not WORD.fullmatch(word) and word in text}
        return {f"{self._planted.get(word, 'something')}: {word}" for word in words}


class Watch:
    """Listens at every way out: the log, `/metrics`, and a collector of metrics and spans."""

    def __init__(self, canaries: Canaries, collector: OtlpCollector, log: io.StringIO) -> None:
        self.collector = collector
        self.scraped = ""
        self.sent_metrics = b""
        self.sent_spans = b""
        self._canaries = canaries
        self._log = log

    @property
    def logged(self) -> str:
        return self._log.getvalue()

    def hear_out(self) -> None:
        """Takes in all that the collector has got so far."""
        while not self.collector.metrics.empty():
            self.sent_metrics += self.collector.metrics.get_nowait().SerializeToString()
        while not self.collector.traces.empty():
            self.sent_spans += self.collector.traces.get_nowait().SerializeToString()

    def leaks(self, *endpoints: str) -> dict[str, set[str]]:
        """Where a canary got out. The endpoints of connectors may stand in metrics, and nowhere else."""
        self.hear_out()
        found = {
            "log": self._canaries.found_in(self.logged),
            "/metrics": self._canaries.found_in(self.scraped, endpoints),
            "sent metrics": self._canaries.found_in(self.sent_metrics, endpoints),
            "sent spans": self._canaries.found_in(self.sent_spans),
        }
        return {way: words for way, words in found.items() if words}


@contextlib.contextmanager
def watching(canaries: Canaries) -> Generator[Watch]:
    """Everything that is logged in the block, down to the last detail, and a collector; all is put back afterwards."""
    root = logging.getLogger()
    handlers, level, log = root.handlers[:], root.level, io.StringIO()
    configure_logging(LogSettings(level="debug", format="json"), stream=log)
    structlog.configure(cache_logger_on_first_use=False)  # or the loggers would keep to this log for ever
    try:
        with running_collector() as collector:
            yield Watch(canaries, collector, log)
    finally:
        logging.captureWarnings(False)
        structlog.reset_defaults()
        structlog.contextvars.clear_contextvars()
        root.handlers[:] = handlers
        root.setLevel(level)
