"""The disk of the endpoint's own PostgreSQL is full: who asks is told so, and answers are right once there is room."""

from __future__ import annotations

import psycopg
import pytest

from tests.gateway.trades import Serving, configuration, events, folder, host
from tests.job.full_disks import NotMounted, mounted

pytestmark = pytest.mark.postgres


def asked(day: int) -> bytes:
    return f"SELECT count(*), sum(total) FROM TradeAgg WITHIN '2018-01-{day:02d} **:**:**' PER 'hours' t".encode()


@pytest.mark.slow
def test_a_full_disk_under_the_loaded_ranges_is_an_error_of_the_question_alone() -> None:
    with folder() as made:
        try:
            with mounted(made / "small", 160) as disk:
                disk.path.chmod(0o755)
                conf = configuration(made, serve=f'port = 0\ndata = "{disk.path / "serve"}"')
                host(conf).send("Trades", events("2018-01"))
                with Serving(conf) as serving, psycopg.connect(**serving.login(), autocommit=True) as client:
                    before = client.execute(asked(1)).fetchone()
                    disk.fill(left=0)
                    with pytest.raises(psycopg.Error) as full:
                        for day in range(2, 29):
                            client.execute(asked(day)).fetchone()
                    said = full.value.diag
                    assert "No space left on device" in (said.message_primary or "")
                    assert "the disk of its `data`" in (said.message_hint or "")
                    disk.free()
                    with psycopg.connect(**serving.login(), autocommit=True) as other:
                        found = [other.execute(asked(day)).fetchone() for day in range(1, 29)]
                    assert found[0] == before
                    assert found == [(6, float(9 * day)) for day in range(1, 29)]
        except NotMounted:
            pytest.skip("only root may mount a small file system")
