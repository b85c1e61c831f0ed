// The box for questions: Ctrl+Enter asks, and a list offers what may follow: Tab takes it, arrows choose, Escape closes.

const box = document.getElementById("q"), list = document.getElementById("choices");
const known = JSON.parse(document.getElementById("known").textContent);
const words = ["from", "within", "per", "select", "where", "group by", "having", "order by", "limit", "explain", "join", "on", "in zone"];
const extra = ["AGG_TIME", "AGG_TIMESTAMP", "AGG_EVENTS", "AGG_FINAL", "AGG_REVISION", "merge("];
let offered = [], chosen = -1;

function begun() {
  return /['"`]?[\w.]*$/.exec(box.value.slice(0, box.selectionStart))[0];
}

// What may stand at the cursor, by the last word of the language before it and the names in the question.
function fitting() {
  const start = begun(), before = box.value.slice(0, box.selectionStart - start.length);
  const last = [...before.matchAll(/\b(from|join|per|within|select|on|where|by|having|explain)\b/gi)].at(-1)?.[1].toLowerCase();
  const asked = Object.keys(known).filter((name) => box.value.includes(name));
  const some = asked.length ? asked : Object.keys(known);
  const of = (kind) => [...new Set(some.flatMap((name) => known[name][kind]))];
  const next = /[\w)'"`]\s+$/.test(before) || !before.trim() ? words : [];
  const found = {
    from: [...(/\b(from|join)\s+$/i.test(before) ? Object.keys(known) : []), ...next],
    per: /\bper\s+$/i.test(before) ? [...of("levels"), "weeks", "auto"].map((level) => `'${level}'`) : next,
    within: next,
  };
  found.join = found.from;
  const all = (last && (found[last] ?? [...of("columns"), ...extra, ...next])) ?? [...next, ...Object.keys(known)];
  const typed = start.toLowerCase();
  return [...new Set(all)].filter((word) => word.toLowerCase().startsWith(typed) && word.toLowerCase() !== typed).slice(0, 8);
}

function offer(found) {
  [offered, chosen] = [found, -1];
  list.replaceChildren(...found.map((word, index) => {
    const row = document.createElement("li");
    [row.id, row.textContent] = [`choice-${index}`, word];
    row.setAttribute("role", "option");
    row.addEventListener("mousedown", (event) => { event.preventDefault(); take(word); });
    return row;
  }));
  list.hidden = !found.length;
  mark();
}

function mark() {
  for (const [index, row] of [...list.children].entries()) row.setAttribute("aria-selected", index === chosen);
  if (chosen < 0) box.removeAttribute("aria-activedescendant");
  else box.setAttribute("aria-activedescendant", `choice-${chosen}`);
}

function put(text, from) {
  box.focus();
  box.setRangeText(text, from, box.selectionEnd, "end");
}

function take(word) {
  put(word, box.selectionStart - begun().length);
  offer([]);
}

box.addEventListener("input", () => offer(begun().length > 1 ? fitting() : []));
box.addEventListener("blur", () => offer([]));
box.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) return box.form.requestSubmit();
  if (event.key === " " && event.ctrlKey) {
    event.preventDefault();
    return offer(fitting());
  }
  if (!offered.length) return;
  const act = {
    Tab: () => take(offered[Math.max(chosen, 0)]),
    ArrowDown: () => { chosen = (chosen + 1) % offered.length; mark(); },
    ArrowUp: () => { chosen = (Math.max(chosen, 0) || offered.length) - 1; mark(); },
    Escape: () => offer([]),
    ...(chosen >= 0 && {Enter: () => take(offered[chosen])}),
  }[event.key];
  if (act && !event.shiftKey) {
    event.preventDefault();
    act();
  }
});
for (const button of document.querySelectorAll(".word")) button.addEventListener("click", () => put(button.textContent, box.selectionStart));
