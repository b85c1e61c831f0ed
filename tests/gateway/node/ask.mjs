// What programs of node send through the endpoint, each answer as a line of JSON; the first argument is how to log in.
import pg from "pg";
import { to } from "pg-copy-streams";
import Cursor from "pg-cursor";
import QueryStream from "pg-query-stream";

const login = JSON.parse(process.argv[2]);
const low = new Date(Date.UTC(2018, 0, 1));
const high = new Date(Date.UTC(2018, 1, 1));
const SUM = "SELECT sum(total) AS s FROM TradeAgg WITHIN $1, $2 PER 'days' t";

async function told(what, answer) {
  let found;
  try {
    found = await answer();
  } catch (problem) {
    found = { error: problem.message, code: problem.code };
  }
  console.log(JSON.stringify([what, found]));
}

async function all(stream) {
  let text = "";
  for await (const part of stream) text += part;
  return text;
}

const client = new pg.Client(login);
const said = [];
client.on("notice", (notice) => said.push(notice.message));
client.on("error", () => said.push("error"));
await client.connect();
const rows = async (text, values) => (await client.query(text, values)).rows;

const bounds = {
  dates: [low, high],
  numbers: [Number(low), Number(high)],
  bigints: [BigInt(Number(low)), BigInt(Number(high))],
  days: ["2018-01-01", "2018-02-01"],
  instants: [low.toISOString(), high.toISOString()],
  mixed: [low, Number(high)],
};
for (const [kind, values] of Object.entries(bounds)) {
  await told(`within ${kind}`, async () => (await rows(SUM, values))[0].s);
  const named = { name: "again", text: SUM, values };
  await told(`named ${kind}`, async () => (await client.query(named)).rows[0].s);
}
await told("within one text", async () => (await rows(SUM.replace("$1, $2", "$1"), ["2018-01"]))[0].s);
await told("per", async () => (await rows(SUM.replace("'days'", "$3"), [low, high, "hours"]))[0].s);
await told("call", async () => (await rows("SELECT sum(total) AS s FROM TradeAgg($1, $2, $3)", [low, high, "days"]))[0].s);
await told("null bound", () => rows(SUM, [null, high]));
await told("values", async () => {
  const where = "symbol = ANY($3) AND symbol IN ($4, $5) AND total > $6 AND trades < $7 AND ($8::text IS NULL OR symbol = $8)";
  const text = `SELECT symbol, count(*)::int AS n FROM TradeAgg WITHIN $1, $2 PER 'days' t WHERE ${where} GROUP BY 1 ORDER BY 1 LIMIT $9`;
  return rows(text, [low, high, ["A", "B", null], "A", "B", 0.5, 10, null, 5]);
});
await told("types", () =>
  rows("SELECT $1::jsonb AS j, $2::bytea AS b, $3::bool AS t, $4::numeric AS n, $5::timestamptz AS z, $6::int8 AS i", [
    { a: [1, null] }, Buffer.from([0, 255]), true, "1.50", low, 2n ** 62n,
  ]));
await told("several statements", async () => {
  const found = await client.query("BEGIN; SELECT count(*)::int AS n FROM TradeAgg WITHIN '2018-01' PER 'days' t; COMMIT");
  return found.map((each) => [each.command, ...each.rows]);
});
await told("cursor", async () => {
  const cursor = client.query(new Cursor("SELECT total FROM TradeAgg WITHIN $1, $2 PER 'hours' t", [low, high]));
  const read = [];
  for (let some = await cursor.read(50); some.length; some = await cursor.read(50)) read.push(some.length);
  await cursor.close();
  return read;
});
await told("a cursor that is left", async () => {
  const cursor = client.query(new Cursor("SELECT total FROM TradeAgg WITHIN $1, $2 PER 'hours' t", [low, high]));
  const some = await cursor.read(5);
  await cursor.close();
  return some.length;
});
await told("stream", async () => {
  let sum = 0;
  const text = "SELECT total FROM TradeAgg WITHIN $1, $2 PER 'hours' t";
  for await (const row of client.query(new QueryStream(text, [low, high], { batchSize: 7 }))) sum += row.total;
  return sum;
});
await told("declared cursor", async () => {
  await client.query("BEGIN; DECLARE c CURSOR FOR SELECT total FROM TradeAgg WITHIN '2018-01' PER 'days' t");
  const found = (await rows("FETCH 3 FROM c")).length;
  await client.query("CLOSE c; COMMIT");
  return found;
});
await told("copy", () =>
  all(client.query(to("COPY (SELECT symbol, total FROM TradeAgg WITHIN '2018-01' PER 'months' t ORDER BY 1) TO STDOUT (FORMAT csv)"))));
await told("notice", async () => {
  await rows(`SELECT sum("avgPrice") FROM TradeAgg WITHIN '2018-01' PER 'days' t`);
  return said.length;
});
await told("notifications", async () => {
  await client.query("LISTEN news; UNLISTEN *");
  return "heard";
});
await told("notify", () => rows("NOTIFY news, 'x'"));
await told("reset", async () => {
  await client.query("BEGIN; ROLLBACK; RESET ALL; CLOSE ALL; UNLISTEN *; DISCARD TEMP; DEALLOCATE ALL");
  await client.query("DISCARD ALL");
  return (await rows(SUM, bounds.dates))[0].s;
});
await client.end();

await told("statement timeout", async () => {
  const hasty = new pg.Client({ ...login, statement_timeout: 200 });
  await hasty.connect();
  try {
    return await hasty.query("SELECT pg_sleep(20)");
  } finally {
    await hasty.end();
  }
});
await told("pool", async () => {
  const pool = new pg.Pool({ ...login, max: 3 });
  const text = `${SUM} WHERE trades > $3`;
  const asked = Array.from({ length: 12 }, (_, n) => pool.query({ name: "p", text, values: [low, high, n % 2 ? 1 : 1e6] }));
  const found = (await Promise.all(asked)).map((each) => each.rows[0].s);
  await pool.end();
  return found;
});
await told("subscription", async () => {
  const listening = new pg.Client(login);
  listening.on("error", () => {});
  await listening.connect();
  let text = "";
  for await (const part of listening.query(to("COPY (SUBSCRIBE TradeAgg PER 'years') TO STDOUT"))) {
    text += part;
    if (text.includes("\tcommit\t")) break;
  }
  listening.connection.stream.destroy();
  return text.split("\n").filter((line) => line.includes("\trow\t")).length;
});
process.exit(0);
