// Keeps what changes up to date by asking for the page again, and gives a further field when the last one is filled.

const PAUSE = 200; // milliseconds; `data-live` has those after which a part of the page is asked for again

async function refresh() {
  const shown = document.querySelector("[data-live]");
  if (shown) await renew(shown);
  setTimeout(refresh, document.querySelector("[data-live]")?.dataset.live ?? PAUSE);
}

async function renew(shown) {
  let page = "";
  try {
    const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
    if (answer.ok) page = await answer.text();
  } catch { /* the server is away: it is asked again */ }
  const next = page && new DOMParser().parseFromString(page, "text/html").getElementById(shown.id);
  if (next && shown.isConnected && next.outerHTML !== shown.outerHTML) {
    const focused = document.activeElement?.id;
    const log = next.querySelector(".log");
    shown.replaceWith(document.adoptNode(next));
    if (focused) document.getElementById(focused)?.focus({ preventScroll: true });
    if (log) log.scrollTop = log.scrollHeight;
  }
}

addEventListener("input", (event) => {
  const field = event.target.closest("fieldset > input");
  const last = field && [...field.parentElement.querySelectorAll("input")].at(-1);
  if (!last || !last.value || field.name === "judge") return;
  const more = last.cloneNode();
  more.value = "";
  delete more.dataset.key;
  more.setAttribute("aria-label", last.getAttribute("aria-label").replace(/\d+$/, (number) => Number(number) + 1));
  last.after(more);
});

for (const log of document.querySelectorAll(".log")) log.scrollTop = log.scrollHeight;
setTimeout(refresh, PAUSE);
