// What all pages share: keys that stand in `data-key` of what they press or focus.

addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (/^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  const wanted = [...document.querySelectorAll("[data-key]")].find((one) => one.dataset.key === event.key);
  if (!wanted) return;
  event.preventDefault();
  if (/^(INPUT|SELECT|TEXTAREA)$/.test(wanted.tagName)) wanted.focus();
  else wanted.click();
});
