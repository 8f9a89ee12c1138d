// What the address asks for: all runs, one of them, or one of its items.

async function start() {
  const tables = new Map();
  const table = async (run) => {
    if (!tables.has(run)) {
      const root = document.querySelector(`.run[data-run="${CSS.escape(run)}"] .items`);
      tables.set(run, new Items(root, await runItems(run, embedded(run))));
    }
    return tables.get(run);
  };
  const runs = [...document.querySelectorAll(".run")];
  const overview = document.querySelector(".overview");
  let current = null;
  const follow = async () => {
    const address = new URLSearchParams(location.hash.slice(1));
    const run = overview ? address.get("run") : "0";
    for (const one of runs) one.hidden = one.dataset.run !== run;
    const known = runs.some((one) => !one.hidden);
    if (overview) overview.hidden = known;
    current = known ? await table(run) : null;
    current?.follow(address);
  };
  addEventListener("hashchange", follow);
  addEventListener("keydown", (event) => current?.key(event));
  await follow();
  document.documentElement.dataset.ready = "true";
}

start();
