// Views that people keep: their addresses, by name, in the storage of the browser, since the server writes nothing.

const section = document.getElementById("saved"), list = section.querySelector("ul"), form = section.querySelector("form");
const place = `saved ${section.dataset.conf}`;

function kept() {
  try {
    return Object.entries(JSON.parse(localStorage.getItem(place) ?? "{}")).filter(([, to]) => /^\/(ask|explore)\b/.test(to));
  } catch {
    return [];
  }
}

function keep(views) {
  localStorage.setItem(place, JSON.stringify(Object.fromEntries(views)));
  show();
}

function show() {
  list.replaceChildren(...kept().map(([title, to]) => {
    const row = document.createElement("li"), link = document.createElement("a"), gone = document.createElement("button");
    [link.href, link.textContent] = [to, title];
    [gone.type, gone.textContent] = ["button", "remove"];
    gone.setAttribute("aria-label", `remove ${title}`);
    gone.addEventListener("click", () => keep(kept().filter(([each]) => each !== title)));
    row.append(link, gone);
    return row;
  }));
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  const title = form.elements.title.value.trim();
  if (!title) return;
  const asked = document.getElementById("q");
  const to = asked ? `/ask?q=${encodeURIComponent(asked.value)}` : location.pathname + location.search;
  keep([...kept().filter(([each]) => each !== title), [title, to]]);
  form.reset();
});
section.hidden = false;
show();
