// Keys for everything on a page: "?" lists the keys of the page, "." puts letters beside all that can be pressed.

const FIELDS = /^(INPUT|SELECT|TEXTAREA)$/;
const PRESSED = "a[href], button, summary, select, textarea, input:not([type=hidden])";
const ROWS = ".rows tbody th a:first-of-type";
const LETTERS = "asdfghjklqwertyuiopzxcvbnm";
const NAMES = { ArrowLeft: "←", ArrowRight: "→", ArrowUp: "↑", ArrowDown: "↓", Escape: "Esc" };

const nameOf = (element) =>
  (element.ariaLabel || element.labels?.[0]?.firstChild?.textContent || element.textContent || element.title || element.name || "").replace(/\s+/g, " ").trim().slice(0, 80);

const made = (tag, text = "", name = "") => Object.assign(document.createElement(tag), { textContent: text, className: name });

// --- rooms: the first letter of the name that no other has, as a capital

const taken = new Set();
for (const link of document.querySelectorAll("body > nav > a:not([data-key])")) {
  const letter = [...link.textContent.toUpperCase()].find((character) => /[A-Z]/.test(character) && !taken.has(character));
  if (letter) {
    taken.add(letter);
    link.dataset.key = letter;
  }
}
for (const element of document.querySelectorAll("[data-key]")) element.ariaKeyShortcuts = element.dataset.key;

// --- the list of keys

const help = made("dialog", "", "keys");
help.ariaLabel = "Keys of this page";

function showHelp() {
  const own = [...document.querySelectorAll("[data-key]")]
    .filter((element) => element.checkVisibility())
    .map((element) => [[element.dataset.key, element.dataset.keyToo].filter(Boolean), nameOf(element)]);
  const listed = [...document.querySelectorAll(".items .help span")]
    .filter((element) => element.closest(".items").checkVisibility())
    .map((element) => [[...element.querySelectorAll("kbd")].map((key) => key.textContent), element.lastChild.textContent.trim()]);
  if (!listed.length && document.querySelector(ROWS)) listed.push([["j", "k"], "next, previous row"]);
  if (document.querySelector(".rows tbody th [type=checkbox]")) listed.push([["Space"], "choose the row"]);
  const rowKeys = new Map([...document.querySelectorAll("[data-row-key]")].map((element) => [element.dataset.rowKey, element.textContent]));
  for (const [key, name] of rowKeys) own.push([[key], `${name} of the row that is focused`]);
  const common = [[["."], "a letter beside everything that can be pressed"], [["Tab"], "the next thing that can be pressed"], [["Esc"], "leave a field, or close this list"]];
  const list = made("dl");
  for (const [keys, name] of [...own, ...listed, ...common]) {
    const row = list.appendChild(made("div")), term = row.appendChild(made("dt"));
    for (const key of keys) term.append(made("kbd", NAMES[key] ?? key), " ");
    row.append(made("dd", name));
  }
  const close = made("button", "Close");
  close.addEventListener("click", () => help.close());
  help.replaceChildren(made("h2", "Keys of this page"), list, close);
  if (!help.isConnected) document.body.append(help);
  help.showModal();
}

const button = made("button", "Keys ", "help");
button.append(made("kbd", "?"));
button.addEventListener("click", showHelp);
document.querySelector("body > nav")?.append(button);

// --- letters beside everything

let hints = null;

function showHints() {
  const seen = [...document.querySelectorAll(PRESSED)].filter((element) => {
    const { top, bottom, right, width } = element.getBoundingClientRect();
    return width && right > 0 && bottom > 0 && top < innerHeight && !element.disabled && element.checkVisibility({ visibilityProperty: true });
  });
  const each = seen.length > LETTERS.length ? 2 : 1;
  const layer = made("div", "", "hints");
  layer.ariaHidden = "true";
  hints = { layer, typed: "", marks: [] };
  for (const [place, element] of seen.slice(0, LETTERS.length ** 2).entries()) {
    const code = (each === 2 ? LETTERS[Math.floor(place / LETTERS.length)] : "") + LETTERS[place % LETTERS.length];
    const { left, top } = element.getBoundingClientRect(), mark = made("kbd", code);
    mark.style.left = `${Math.max(12, left)}px`;
    mark.style.top = `${Math.max(6, top)}px`;
    layer.append(mark);
    hints.marks.push({ code, element, mark });
  }
  document.body.append(layer);
}

function hideHints() {
  hints?.layer.remove();
  hints = null;
}

function typeHint(key) {
  hints.typed += key;
  const left = hints.marks.filter(({ code }) => code.startsWith(hints.typed));
  for (const { code, mark } of hints.marks) mark.hidden = !code.startsWith(hints.typed);
  const found = left.find(({ code }) => code === hints.typed);
  if (!found && left.length) return;
  hideHints();
  if (!found) return;
  found.element.focus();
  const types = FIELDS.test(found.element.tagName) && !/^(checkbox|radio|submit|button)$/.test(found.element.type);
  if (!types) found.element.click();
}

addEventListener("scroll", hideHints, true);
addEventListener("pointerdown", hideHints, true);
addEventListener(
  "keydown",
  (event) => {
    if (help.open) return void event.stopImmediatePropagation(); // Esc closes the list, and nothing behind it
    if (event.ctrlKey || event.metaKey || event.altKey || event.key === "Shift") return;
    if (!hints && (FIELDS.test(event.target.tagName) || !"?.".includes(event.key))) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    if (hints) event.key.length === 1 && event.key !== "." ? typeHint(event.key) : hideHints();
    else if (event.key === "?") showHelp();
    else showHints();
  },
  true,
);
