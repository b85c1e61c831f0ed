"""What is emitted of a command and its batches: lineage (OpenLineage) and traces (OpenTelemetry)."""
