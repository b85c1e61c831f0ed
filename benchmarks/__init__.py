"""Benchmarks: our job beside its peers on the same machine, the same events and in the same run.

Run one by ``python -m benchmarks.cascade`` (or ``live``, ``retrieval``); every result is one JSON line.
These are never timed tests: nothing here passes or fails by a clock.
"""
