// Forms that are answered within the page, and keys that wait. A browser forgets the keys that are pressed between two
// pages, so a form whose keys follow each other quickly has `data-in-place`. Loaded first, to hear the first key.
{
  const FIELDS = "input, select, textarea";
  const waiting = [];
  let isBusy = true; // until the page is loaded, and while a form is being answered

  const press = (key) => {
    const target = document.activeElement ?? document.body;
    const event = new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true });
    if (!target.dispatchEvent(event)) return;
    if (key.length === 1 && target.matches(FIELDS)) document.execCommand("insertText", false, key);
    else if (key === "Enter") target.click();
  };

  const goOn = () => {
    isBusy = false;
    while (waiting.length && !isBusy) press(waiting.shift());
  };

  const answerInPlace = async (form, submitter) => {
    isBusy = true;
    const body = new URLSearchParams(new FormData(form, submitter));
    const answer = await fetch(form.action, { method: "POST", body }).catch(() => null);
    if (!answer) { // the server is away: the browser says so
      delete form.dataset.inPlace;
      return form.requestSubmit(submitter);
    }
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const main = document.adoptNode(page.getElementById("main"));
    document.getElementById("main").replaceWith(main);
    document.title = page.title;
    if (answer.redirected) history.replaceState(null, "", answer.url);
    main.tabIndex = -1; // where a screen reader goes on
    main.focus();
    scrollTo(0, 0);
    goOn();
  };

  addEventListener(
    "keydown",
    (event) => {
      const isOther = event.ctrlKey || event.metaKey || event.altKey || ["Shift", "Tab"].includes(event.key);
      if (!isBusy || isOther || event.target.matches(FIELDS)) return;
      event.preventDefault();
      event.stopImmediatePropagation();
      waiting.push(event.key);
    },
    true,
  );
  addEventListener("submit", (event) => {
    if (!("inPlace" in event.target.dataset)) return;
    event.preventDefault();
    if (!isBusy) answerInPlace(event.target, event.submitter);
  });
  document.addEventListener("DOMContentLoaded", goOn);
}
