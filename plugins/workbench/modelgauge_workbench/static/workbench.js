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
    if (event.key === "Escape") event.target.blur();
    return;
  }
  const keys = (one) => [one.dataset.key, one.dataset.keyToo];
  const wanted = [...document.querySelectorAll("[data-key]")].find((one) => keys(one).includes(event.key));
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

// A part of a page that changes by itself, such as runs that are going on: asked for again, and replaced where it differs.
async function refresh(part) {
  const answer = await fetch(location.href).catch(() => null); // the server may be gone, and come back
  const next = answer?.ok && new DOMParser().parseFromString(await answer.text(), "text/html").getElementById(part.id);
  if (next && next.innerHTML !== part.innerHTML && !part.contains(document.activeElement)) {
    part.replaceWith(next);
    part = next;
  }
  again(part);
}

function again(part) {
  const seconds = Number(part?.dataset.refresh);
  if (seconds) setTimeout(() => (document.hidden ? again(part) : refresh(part)), 1000 * seconds);
}
again(document.querySelector("[data-refresh]"));
