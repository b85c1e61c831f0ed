"""What follows a command and its batches: lineage (OpenLineage), traces (OpenTelemetry), and tables in Iceberg."""
