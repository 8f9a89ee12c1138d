// The columns of the items that people choose: the address and the table change at once, and the list of columns stays open.
/* global columnChoice */

const place = document.getElementById("columns");
const { form } = document.querySelector("#items button");
const columns = JSON.parse(place.dataset.columns).map(([title, , isShown]) => ({ title, isShown }));
const choice = columnChoice(columns);
choice.show(place.dataset.chosen);
place.append(choice.element);

choice.element.addEventListener("change", async (event) => {
  event.stopPropagation(); // the form is not sent
  const fields = [...new FormData(form)].filter(([, value]) => value);
  history.replaceState(null, "", `?${new URLSearchParams(fields)}`);
  const { href } = location;
  const answer = await fetch(href);
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  if (href !== location.href) return; // other columns were chosen meanwhile
  document.getElementById("rows").replaceWith(page.getElementById("rows"));
  document.dispatchEvent(new Event("address")); // live.js follows it
});
