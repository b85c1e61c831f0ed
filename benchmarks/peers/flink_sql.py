"""Flink's side of `benchmarks.sql`, run by a Python that has apache-flink: a file, its jars, names of queries.

Prints one line of JSON: the seconds of each query, into a sink that forgets. It imports nothing of ours.
"""

from __future__ import annotations

import json
import sys
import time

GROUPED = "productId, COUNT(*) AS c, SUM(units) AS u FROM TABLE"
KEYS = "GROUP BY window_start, window_end, productId"
TUMBLE = "(TUMBLE(TABLE Orders, DESCRIPTOR(rowtime), INTERVAL '1' MINUTES))"
HOP = "(HOP(TABLE Orders, DESCRIPTOR(rowtime), INTERVAL '10' SECONDS, INTERVAL '1' HOURS))"
OVER = "(PARTITION BY productId ORDER BY rowtime RANGE BETWEEN INTERVAL '1' MINUTE PRECEDING AND CURRENT ROW)"
GROUPS = "e TIMESTAMP(3), p INT, c BIGINT, u INT"
QUERIES = {
    "tumble": (GROUPS, f"SELECT window_end, {GROUPED}{TUMBLE} {KEYS}"),
    "hop": (GROUPS, f"SELECT window_end, {GROUPED}{HOP} {KEYS}"),
    "range": ("o BIGINT, u INT", f"SELECT orderId, SUM(units) OVER {OVER} FROM Orders"),
    "join": (
        "o BIGINT, n STRING",
        "SELECT orderId, name FROM Orders AS o JOIN Products AS p ON o.productId = p.productId",
    ),
}


def main(path: str, jars: str, names: list[str]) -> dict[str, float]:
    """The seconds of each query, after a first small job."""
    from pyflink.table import EnvironmentSettings, TableEnvironment  # type: ignore[import-not-found]

    env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    config = env.get_config()
    config.set("parallelism.default", "2")
    config.set("pipeline.jars", ";".join(f"file://{jar}" for jar in jars.split(",")))
    config.set("taskmanager.memory.process.size", "4g")
    env.execute_sql(
        "CREATE TABLE Orders (rowtime TIMESTAMP(3), productId INT, orderId BIGINT, units INT, "
        "WATERMARK FOR rowtime AS rowtime - INTERVAL '0.001' SECOND) "
        f"WITH ('connector' = 'filesystem', 'path' = '{path}', 'format' = 'parquet')"
    )
    products = ", ".join(f"({number}, 'product {number}')" for number in range(100))
    env.execute_sql(f"CREATE TEMPORARY VIEW Products AS SELECT * FROM (VALUES {products}) AS v(productId, name)")
    env.execute_sql("CREATE TABLE warm (n INT) WITH ('connector' = 'blackhole')")
    env.execute_sql("INSERT INTO warm SELECT productId FROM Products").wait()
    found: dict[str, float] = {}
    for name in names:
        columns, query = QUERIES[name]
        env.execute_sql(f"CREATE TABLE sink_{name} ({columns}) WITH ('connector' = 'blackhole')")
        began = time.perf_counter()
        env.execute_sql(f"INSERT INTO sink_{name} {query}").wait()
        found[name] = time.perf_counter() - began
    return found


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], sys.argv[2], sys.argv[3:])))
