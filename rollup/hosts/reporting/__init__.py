"""What a running job says of itself and of its events: lines, logs, metrics, and what is missing, late or very old."""
