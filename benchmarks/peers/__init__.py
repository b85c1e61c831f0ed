"""The peers, one file each; every one runs alone as ``python -m benchmarks.peers.NAME`` and prints JSON lines."""
