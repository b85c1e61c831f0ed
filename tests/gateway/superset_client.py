"""Run by Superset's own Python: makes datasets and charts in a fresh Superset, prints their data as JSON.

    python superset_client.py postgresql+psycopg2://user:password@host:port/rollup

SUPERSET_CONFIG_PATH names the configuration, whose metadata database has been made by `superset db upgrade` and `init`.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from superset.app import create_app


def made(answer: Any) -> Any:
    if answer.status_code not in (200, 201):
        raise SystemExit(f"{answer.status_code} {answer.get_data(as_text=True)[:2000]}")
    return answer.get_json()


def chart(client: Any, dataset: int, **query: Any) -> list[dict[str, Any]]:
    source = {"id": dataset, "type": "table"}
    body = {"datasource": source, "queries": [query], "result_format": "json", "result_type": "full", "force": True}
    return made(client.post("/api/v1/chart/data", json=body))["result"][0]["data"]


def total() -> dict[str, Any]:
    return {"expressionType": "SIMPLE", "column": {"column_name": "total"}, "aggregate": "SUM", "label": "total"}


def main(uri: str) -> None:
    app = create_app()
    with app.app_context():
        manager = app.appbuilder.sm
        if manager.find_user("admin") is None:
            manager.add_user("admin", "a", "b", "a@example.org", manager.find_role("Admin"), password="admin")
    client = app.test_client()
    login = {"username": "admin", "password": "admin", "provider": "db"}
    token = made(client.post("/api/v1/security/login", json=login))["access_token"]
    client.environ_base["HTTP_AUTHORIZATION"] = f"Bearer {token}"
    body = {"database_name": "rollup", "sqlalchemy_uri": uri, "expose_in_sqllab": True}
    database = made(client.post("/api/v1/database/", json=body))["id"]
    seen: dict[str, Any] = {}
    listed = made(client.get(f"/api/v1/database/{database}/tables/?q=(force:!t,schema_name:public)"))
    seen["browser"] = sorted(each["value"] for each in listed["result"])
    place = {"database": database, "schema": "public"}
    view = made(client.post("/api/v1/dataset/", json={**place, "table_name": "TradeAgg_per_days"}))["id"]
    month = "2018-01-05T00:00:00 : 2018-01-08T00:00:00"
    axis = {"columnType": "BASE_AXIS", "sqlExpression": "AGG_TIME", "label": "AGG_TIME", "expressionType": "SQL"}
    axis["timeGrain"] = "P1D"
    seen["line chart"] = chart(
        client, view, columns=[axis], metrics=[total()], row_limit=1000, granularity="AGG_TIME", time_range=month,
        filters=[{"col": "symbol", "op": "==", "val": "A"}],
    )  # fmt: skip
    for name, sql in {
        "call": "SELECT * FROM TradeAgg('2018-01-** **:**:**', 'days')",
        "quoted name": 'SELECT * FROM "TradeAgg within 2018-01-** **:**:** per days"',
    }.items():
        dataset = made(client.post("/api/v1/dataset/", json={**place, "table_name": name, "sql": sql}))["id"]
        seen[name] = chart(
            client, dataset, columns=["symbol"], metrics=[total()], row_limit=100, orderby=[[total(), False]]
        )
        body = {
            "database_id": database,
            "schema": "public",
            "sql": f"{sql} AS t ORDER BY 1, 2 LIMIT 3",
            "runAsync": False,
        }
        answer = client.post("/api/v1/sqllab/execute/", json=body)
        seen[f"{name} in SQL Lab"] = made(answer)["data"][:2]
    clause = "SELECT * FROM TradeAgg WITHIN '2018-01-** **:**:**' PER 'days'"
    body = {"database_id": database, "schema": "public", "sql": clause, "runAsync": False}
    seen["clause in SQL Lab"] = client.post("/api/v1/sqllab/execute/", json=body).status_code
    print("SEEN " + json.dumps(seen, default=str))


if __name__ == "__main__":
    main(sys.argv[1])
