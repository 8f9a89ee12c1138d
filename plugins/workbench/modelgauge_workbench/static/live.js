// Keeps the page of a run that is going on up to date, and shows its report when it has ended.

const progress = document.getElementById("progress");
let source = null;

function listen() {
  source = new EventSource(`${progress.dataset.live}${location.search}`);
  source.onmessage = (event) => {
    const shown = JSON.parse(event.data); // markup of our own templates
    progress.innerHTML = shown.progress;
    const rows = document.getElementById("rows");
    if (!rows.contains(document.activeElement)) rows.innerHTML = shown.rows;
  };
  source.addEventListener("ended", () => location.reload());
}

function relisten() {
  source?.close();
  if (!document.hidden) listen();
}

// A browser has few connections to a host: pages that nobody sees need none.
document.addEventListener("visibilitychange", relisten);
document.addEventListener("address", relisten); // which columns are wanted
listen();
