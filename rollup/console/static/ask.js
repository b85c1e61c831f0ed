// The box for questions: Ctrl+Enter asks, Tab completes a name, a button puts its name in.

const box = document.getElementById("q");
const hint = document.getElementById("hint");
const names = [...new Set([...document.querySelectorAll("aside p")].flatMap((line) =>
  [line.querySelector(".word")?.textContent, ...(line.querySelector(".quiet")?.textContent ?? "").split(", ")]))].filter(Boolean);
const words = [...names, "from", "within", "per", "select", "group by", "having", "order by", "limit", "AGG_TIMESTAMP", "AGG_EVENTS",
  "AGG_FINAL", "AGG_REVISION", "merge(", "'seconds'", "'minutes'", "'hours'", "'days'", "'weeks'", "'months'", "'years'", "'auto'"];

function begun() {
  return /[\w']+$/.exec(box.value.slice(0, box.selectionStart))?.[0] ?? "";
}

function fitting() {
  const start = begun().toLowerCase();
  return start.length < 2 ? [] : words.filter((word) => word.toLowerCase().startsWith(start) && word.toLowerCase() !== start);
}

function put(text, from) {
  box.focus();
  box.setRangeText(text, from, box.selectionEnd, "end");
}

box.addEventListener("input", () => { hint.textContent = fitting().slice(0, 6).join("   "); });
box.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) box.form.requestSubmit();
  if (event.key === "Tab" && !event.shiftKey && fitting().length) {
    event.preventDefault();
    put(fitting()[0], box.selectionStart - begun().length);
    hint.textContent = "";
  }
});
for (const button of document.querySelectorAll(".word")) button.addEventListener("click", () => put(button.textContent, box.selectionStart));
