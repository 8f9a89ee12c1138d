// Keeps the page of a run that is going on up to date, and shows its report when it has ended.

const progress = document.getElementById("progress");
const rows = document.getElementById("rows");
let source = null;

function listen() {
  source = new EventSource(`${progress.dataset.live}${location.search}`);
  source.onmessage = (event) => {
    const shown = JSON.parse(event.data); // markup of our own templates
    progress.innerHTML = shown.progress;
    if (!rows.contains(document.activeElement)) rows.innerHTML = shown.rows;
  };
  source.addEventListener("ended", () => location.reload());
}

// A browser has few connections to a host: pages that nobody sees need none.
document.addEventListener("visibilitychange", () => {
  source?.close();
  if (!document.hidden) listen();
});
listen();
