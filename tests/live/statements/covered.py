"""All statements that an engine runs over columns, and the streams and contexts that they use."""

from tests.live.statements import contexts, earlier, inserts, joins, patterns, rates, windows

SCHEMA = """
create schema S(symbol string, price double, volume int);
create schema R(volume int, price double, symbol string);
create schema T(symbol string, p double, v int);
create schema U(symbol string, a double);
create context C partition by symbol from S;
create context K partition by symbol, volume from S(price > 20);
create context G group by price < 40 as low, group by price >= 20 as high, group by volume > 2 as much from S(volume >= 0);
create context H coalesce by consistent_hash_crc32(symbol) from S granularity 2;
create context P coalesce by hash_code(volume) from S(price > 1) granularity 3 preallocate;
create context N context A partition by symbol from S(volume >= 0), context B group by price < 40 as low, group by volume > 1 as much
from S(price > 1);
create context M context A coalesce by hash_code(volume) from S granularity 2, context B partition by symbol, volume from S(price > 1);
create context J partition by symbol from S, symbol from R(price > 10);
create context E context A coalesce by hash_code(volume) from S, hash_code(volume) from R granularity 2,
context B partition by symbol from S, symbol from R;
create context Y start @now end after 25 msec;
create context B start S(price > 50) as s end S(symbol = s.symbol, volume > 1);
create context I initiated by S(price > 50) as s terminated after 40 msec;
create context D initiated by distinct(symbol) S(volume >= 0) as s terminated after 30 msec;
create context L initiated by S(price > 20) as s terminated by S(symbol = s.symbol, volume < 2);
"""

COVERED = {
    **contexts.STATEMENTS,
    **windows.STATEMENTS,
    **rates.STATEMENTS,
    **joins.STATEMENTS,
    **patterns.STATEMENTS,
    **earlier.STATEMENTS,
    **inserts.STATEMENTS,
}
