// The chart of the explorer. The server has rendered everything else; the address says all that is shown.

const place = document.getElementById("chart");
const path = location.pathname.replace("/explore/", "/api/series/");
let shown = JSON.parse(document.getElementById("data").textContent);
let plot = null;
let turn = 0;

const COLOURS = ["#0b6e99", "#d1495b", "#3d8b37", "#8e5fb0", "#b5651d", "#2a9d8f", "#7a7a00", "#c2418c"];
const DASHES = [[], [7, 3], [2, 2], [9, 3, 2, 3]];
const dark = matchMedia("(prefers-color-scheme: dark)");
const ink = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/** The columns of uPlot: a gap wherever a bucket is missing, and each value line once more for its open buckets. */
function columns(data) {
  const at = [], taken = [];
  data.at.forEach((instant, i) => {
    if (i && instant - data.at[i - 1] > 1.6 * data.step) { at.push((data.at[i - 1] + data.step) / 1000); taken.push(-1); }
    at.push(instant / 1000);
    taken.push(i);
  });
  const lines = [];
  for (const line of data.lines) {
    const values = taken.map((i) => (i < 0 ? null : line.values[i]));
    if (line.kind === "before" || data.openFrom === null) { lines.push([line, values]); continue; }
    const first = at.findIndex((second) => second * 1000 >= data.openFrom);
    if (first < 0) { lines.push([line, values]); continue; }
    lines.push([line, values.map((value, i) => (i < first ? value : null))]);
    lines.push([{...line, name: line.name + ", open", open: true}, values.map((value, i) => (i < first - 1 ? null : value))]);
  }
  return {data: [at, ...lines.map(([, values]) => values)], lines: lines.map(([line]) => line)};
}

/** The places of values between two gaps, which no line shows. */
function alone(values) {
  const none = (i) => values[i] === null || values[i] === undefined;
  return values.flatMap((_, i) => (!none(i) && none(i - 1) && none(i + 1) ? [i] : []));
}

function draw(data) {
  const {data: values, lines} = columns(data);
  const zone = /^[+-]/.test(data.zone) ? null : data.zone;
  const shift = zone ? 0 : offset(data.zone);
  let number = -1;
  const series = lines.map((line) => {
    if (!line.open) number += 1;
    const grey = line.kind !== "value";
    return {
      label: line.name,
      stroke: grey ? ink("--quiet") : COLOURS[number % COLOURS.length],
      width: grey ? 1 : 1.6,
      dash: line.open ? [3, 5] : line.kind === "before" ? [] : DASHES[Math.floor(number / COLOURS.length) % DASHES.length],
      spanGaps: false,
      points: {show: values[0].length < 120, filter: (u, line, all) => (all ? null : alone(u.data[line]))},
      value: (_, value) => (value === null || value === undefined ? "·" : value.toLocaleString("en", {maximumFractionDigits: 3})),
    };
  });
  const axis = {stroke: ink("--quiet"), grid: {stroke: ink("--line"), width: 1}, ticks: {stroke: ink("--line"), width: 1}};
  plot?.destroy();
  place.replaceChildren();
  plot = new uPlot({
    width: place.clientWidth, height: 380,
    tzDate: (second) => (zone ? uPlot.tzDate(new Date(second * 1000), zone) : uPlot.tzDate(new Date(second * 1000 + shift), "UTC")),
    scales: {x: {min: Math.min(data.from, data.at[0] ?? data.from) / 1000, max: data.to / 1000}},
    axes: [axis, {...axis, size: 70, values: (_, marks) => marks.map((mark) => mark.toLocaleString("en"))}],
    series: [{value: "{YYYY}-{MM}-{DD} {HH}:{mm}:{ss}"}, ...series],
    cursor: {drag: {x: true, y: false}},
    hooks: {
      setSelect: [(u) => {
        if (u.select.width > 5) show({from: instant(u.posToVal(u.select.left, "x")), to: instant(u.posToVal(u.select.left + u.select.width, "x"))});
      }],
      draw: [(u) => marks(u, data)],
      setCursor: [(u) => remark(u, data)],
    },
  }, values, place);
  plot.over.addEventListener("dblclick", (event) => { event.stopImmediatePropagation(); zoom(3); }, true);
}

const instant = (second) => Math.round(second * 1000);

function offset(zone) {
  const found = /^([+-])(\d\d):(\d\d)$/.exec(zone);
  return found ? (found[1] === "-" ? -1 : 1) * (found[2] * 60 + +found[3]) * 60000 : 0;
}

/** A dot on the axis for every bucket that late events have corrected. */
function marks(u, data) {
  u.ctx.fillStyle = ink("--warn");
  for (const at of Object.keys(data.corrected)) {
    u.ctx.beginPath();
    u.ctx.arc(u.valToPos(at / 1000, "x", true), u.bbox.top + u.bbox.height - 4, 4, 0, 7);
    u.ctx.fill();
  }
}

function remark(u, data) {
  const at = u.cursor.idx === null ? null : u.data[0][u.cursor.idx] * 1000;
  const corrected = at === null ? undefined : data.corrected[at];
  const open = at !== null && data.openFrom !== null && at >= data.openFrom;
  place.title = [corrected && `corrected ${corrected[0]} times by ${corrected[1]} late events`, open && "open: events may still come"].filter(Boolean).join("; ");
}

/** Shows the same view with changes of the address; `replace` keeps the step back as it is. */
async function show(changes, replace = false) {
  const asked = new URLSearchParams(location.search);
  if ("from" in changes) asked.delete("range");
  for (const [name, value] of Object.entries(changes)) asked.set(name, value);
  const own = ++turn;
  const wide = new URLSearchParams(asked);
  wide.set("width", place.clientWidth || 1000);
  let data;
  try {
    const response = await fetch(`${path}?${wide}`);
    data = await response.json();
  } catch {
    data = {error: "the server does not answer"};
  }
  if (own !== turn) return; // a later question has been asked meanwhile
  if (data.error) { say([data.error]); return; }
  if (!replace) history.pushState(null, "", `?${asked}`);
  shown = data;
  render(data);
}

function say(sentences) {
  document.getElementById("said").replaceChildren(...sentences.map((text) => made("p", text, "note")));
}

function made(name, text, style) {
  const element = document.createElement(name);
  if (text !== undefined) element.textContent = text;
  if (style) element.className = style;
  return element;
}

function render(data) {
  draw(data);
  say(data.said);
  document.getElementById("level").textContent =
    `${data.level}, ${data.at.length.toLocaleString("en")} buckets from ${data.rows.toLocaleString("en")} rows`;
  document.getElementById("siddhi").textContent = data.siddhi;
  document.getElementById("asklink").href = `/ask?q=${encodeURIComponent(data.siddhi)}`;
  document.getElementById("link").href = `?${data.link}`;
  const name = path.replace("/api/series/", "/export/");
  for (const form of ["csv", "parquet"]) document.getElementById(form).href = `${name}?${data.link}&format=${form}`;
  for (const [field, at] of [["from", data.from], ["to", data.to]]) document.forms.view.elements[field].value = local(at, data.zone);
  table(data);
}

function local(at, zone) {
  const fixed = /^[+-]/.test(zone);
  const parts = new Intl.DateTimeFormat("sv-SE", {dateStyle: "short", timeStyle: "medium", timeZone: fixed ? "UTC" : zone});
  return parts.format(new Date(fixed ? at + offset(zone) : at));
}

function table(data) {
  const head = made("tr");
  head.append(...["time", ...data.lines.map((line) => line.name)].map((text) => {
    const cell = made("th", text, "number");
    cell.scope = "col";
    return cell;
  }));
  const body = made("tbody");
  data.at.slice(0, 1000).forEach((at, i) => {
    const row = made("tr");
    row.append(made("td", local(at, data.zone), "number"), ...data.lines.map((line) => {
      const value = line.values[i];
      return made("td", value === null ? "·" : value.toLocaleString("en", {maximumFractionDigits: 6}), "number");
    }));
    body.append(row);
  });
  const grid = made("table"), top = made("thead");
  grid.append(made("caption", `${data.at.length > 1000 ? "The first 1,000 rows, times" : "Times"} in ${data.zone}`, "quiet"));
  top.append(head);
  grid.append(top, body);
  document.querySelector("#table .scroll").replaceChildren(grid);
}

function zoom(factor, move = 0) {
  const middle = (shown.from + shown.to) / 2 + move * (shown.to - shown.from);
  const half = Math.max(((shown.to - shown.from) / 2) * factor, 500);
  show({from: Math.round(middle - half), to: Math.round(middle + half)});
}

function all() {
  const asked = new URLSearchParams(location.search);
  for (const name of ["from", "to", "range"]) asked.delete(name);
  location.search = asked.toString();
}

place.addEventListener("keydown", (event) => {
  const act = {ArrowLeft: () => zoom(1, -0.25), ArrowRight: () => zoom(1, 0.25), "+": () => zoom(0.5), "=": () => zoom(0.5), "-": () => zoom(2), Escape: all}[event.key];
  if (act) { event.preventDefault(); act(); }
});
document.getElementById("out").addEventListener("click", () => zoom(3));
document.getElementById("all").addEventListener("click", all);
document.getElementById("aggregation").addEventListener("change", (event) => { location.href = event.target.value; });
document.getElementById("png").addEventListener("click", () => {
  const link = made("a");
  link.href = plot.ctx.canvas.toDataURL("image/png");
  link.download = "chart.png";
  link.click();
});

const form = document.forms.view;
const drawn = {from: form.elements.from.value, to: form.elements.to.value, zone: form.elements.zone.value};
form.addEventListener("submit", (event) => {
  event.preventDefault();
  const asked = new URLSearchParams();
  for (const [name, value] of new FormData(form)) if (value && !(name === "top" && value === "8")) asked.set(name, value);
  const same = asked.get("from") === drawn.from && asked.get("to") === drawn.to;
  if (asked.get("range")) { asked.delete("from"); asked.delete("to"); }
  else if (same && form.elements.zone.value !== drawn.zone) { asked.set("from", shown.from); asked.set("to", shown.to); }
  location.search = asked.toString();
});

let changes = null;
document.getElementById("live").addEventListener("change", (event) => {
  changes?.close();
  changes = null;
  if (!event.target.checked) return;
  let first = true;
  changes = new EventSource("/api/changes");
  changes.onmessage = () => { if (!first) show({}, true); first = false; };
});
addEventListener("popstate", () => show({}, true));
addEventListener("resize", () => plot?.setSize({width: place.clientWidth, height: 380}));
dark.addEventListener("change", () => draw(shown));
draw(shown);
