// What all pages share: keys that stand in `data-key` of what they press or focus, j and k in tables, filters at once.

const isField = (element) => element.matches("input:not([type=checkbox], [type=radio]), select, textarea");

// The link of the next row of the first table; Enter opens it, as any link.
function step(by) {
  const links = [...document.querySelectorAll(".rows tbody th a:first-of-type")];
  const at = links.indexOf(document.activeElement);
  const next = links[at < 0 ? 0 : Math.min(Math.max(at + by, 0), links.length - 1)];
  next?.focus();
}

addEventListener("keydown", (event) => {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return; // the items of a report have keys, too
  if (isField(event.target)) {
    if (event.key === "Escape") {
      const opened = event.target.closest("[open].noting");
      if (opened) opened.open = false;
      event.target.blur();
    }
    return;
  }
  const box = event.key === " " && event.target.matches("a") && event.target.closest(".rows tr")?.querySelector("[type=checkbox]");
  if (box) {
    event.preventDefault();
    return box.click();
  }
  const ofRow = (event.target.closest(".rows tr") ?? document).querySelector(`[data-row-key="${CSS.escape(event.key)}"]`);
  if (ofRow) {
    event.preventDefault();
    ofRow.click();
    return ofRow.parentElement.querySelector("input:not([type=hidden])")?.focus();
  }
  const keys = (element) => [element.dataset.key, element.dataset.keyToo];
  const wanted = [...document.querySelectorAll("[data-key]")].find((element) => keys(element).includes(event.key));
  if (!wanted && !"jk".includes(event.key)) return;
  event.preventDefault();
  if (!wanted) step(event.key === "j" ? 1 : -1);
  else if (isField(wanted)) wanted.focus();
  else wanted.click();
});

addEventListener("change", (event) => {
  const { form } = event.target;
  if (form?.getAttribute("role") === "search" && event.target.matches("select, [type=checkbox]")) form.requestSubmit();
});

// A form that needs some rows to be chosen says so, in place of a page about it.
addEventListener("submit", (event) => {
  const { target: form } = event, least = Number(form.dataset.least ?? 0);
  const chosen = [...form.elements].filter((element) => element.type === "checkbox" && element.checked).length;
  if (chosen < least) {
    event.preventDefault();
    form.querySelector("output").hidden = false;
  }
});

// Parts of a page that change by themselves, such as the list of runs: asked for again, and replaced where they differ.
// What a person has chosen, focused or opened there stays.
function replaced(part, next) {
  const focused = document.activeElement, isInside = part.contains(focused);
  if (!next || part.querySelector("details[open]") || (isInside && isField(focused)) || next.innerHTML === part.innerHTML) return;
  const chosen = new Set([...part.querySelectorAll("input:checked")].map((box) => box.value));
  part.replaceWith(next);
  for (const box of next.querySelectorAll("[type=checkbox]")) box.checked = chosen.has(box.value);
  const same = (element) => (focused.href ? element.href === focused.href : element.value === focused.value && element.type === focused.type);
  if (isInside) [...next.querySelectorAll(focused.tagName)].find(same)?.focus({ preventScroll: true });
}

async function refresh(seconds) {
  const answer = document.hidden ? null : await fetch(location.href).catch(() => null); // the server may be gone, and come back
  if (answer?.ok) {
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    for (const part of document.querySelectorAll("[data-refresh]")) replaced(part, page.getElementById(part.id));
  }
  setTimeout(refresh, 1000 * seconds, seconds);
}

const live = document.querySelector("[data-refresh]");
if (live) setTimeout(refresh, 1000 * live.dataset.refresh, live.dataset.refresh);
