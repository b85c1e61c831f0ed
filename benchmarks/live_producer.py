"""Sends events to a Kafka topic at a steady rate, each with the moment it was sent; a process of its own.

An event is JSON: ``symbol``, ``price``, ``quantity``, ``ts`` (epoch milliseconds, when it was sent) and ``number``.
A late tick is made up for at once, so the rate holds over the run; each event carries its true moment of sending.
SIGTERM ends it early and cleanly; it then prints what it sent as it does at its own end.
"""

from __future__ import annotations

import argparse
import json
import signal
import threading
import time

from confluent_kafka import Producer

from benchmarks.common import Line

TICK = 0.01  # seconds between two handfuls of events


def send(producer: Producer, topic: str, keys: int, first: int, last: int) -> None:
    """Send events number first … last - 1."""
    for number in range(first, last):
        now = time.time_ns() // 1_000_000
        event = f'{{"symbol":"k{number % keys}","price":{10 + number % 1024 / 8},"quantity":{number % 128},"ts":{now}'
        producer.produce(topic, f'{event},"number":{number}}}')
    producer.poll(0)


def run(producer: Producer, topic: str, rate: int, seconds: float, keys: int, stop: threading.Event) -> Line:
    """Send ``rate`` events a second for so many seconds or until told to stop; returns how many and how fast."""
    started, sent, spent = time.monotonic(), 0, 0.0
    while spent < seconds and not stop.wait(TICK):
        spent = time.monotonic() - started
        due = int(spent * rate)
        send(producer, topic, keys, sent, due)
        sent = due
    return {"sent": sent, "seconds": spent, "rate": sent / max(spent, TICK), "unacknowledged": producer.flush(30)}


def main() -> None:
    """Command line of the producer."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("bootstrap")
    parser.add_argument("topic")
    parser.add_argument("--rate", type=int, default=20_000)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--keys", type=int, default=100)
    options = parser.parse_args()
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    settings = {"bootstrap.servers": options.bootstrap, "linger.ms": 5, "queue.buffering.max.messages": 1_000_000}
    producer = Producer(settings)
    print(json.dumps(run(producer, options.topic, options.rate, options.seconds, options.keys, stop)))


if __name__ == "__main__":
    main()
