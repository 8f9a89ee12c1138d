// What the address asks for: all runs with their comparison, one run, or an item of either.

async function start() {
  const runs = [...document.querySelectorAll(".run")];
  const overview = document.querySelector(".overview");
  const choice = document.querySelector("select[name=compare]");
  const comparisons = [...(choice?.options ?? [])].map((option) => ({
    number: option.value, run: option.dataset.run, name: option.text, data: () => comparedData(option.value),
  }));
  const makers = {
    run: async (run) => runItems(run, sourceOf(run), comparisons.filter((comparison) => comparison.run === run)),
    compare: async (number) => comparedItems(number, await comparedData(number)),
  };
  const tables = new Map();
  const table = async (kind, number, root) => {
    const key = `${kind} ${number}`;
    if (!tables.has(key)) tables.set(key, makers[kind](number).then((model) => new Items(root, model)));
    return tables.get(key);
  };
  let current = null;
  const follow = async () => {
    const address = new URLSearchParams(location.hash.slice(1));
    const run = overview ? address.get("run") : "0";
    const article = runs.find((each) => each.dataset.run === run);
    for (const each of runs) each.hidden = each !== article;
    if (overview) overview.hidden = Boolean(article);
    current = null;
    if (article) current = await table("run", run, article.querySelector(".items"));
    else if (choice) {
      choice.value = address.get("compare") ?? choice.options[0].value;
      current = await table("compare", choice.value, overview.querySelector(".items"));
    }
    current?.follow(address);
  };
  if (choice) choice.onchange = () => { location.hash = `compare=${choice.value}`; };
  addEventListener("hashchange", async () => {
    await follow();
    current?.reveal();
  });
  addEventListener("beforeprint", () => { for (const part of document.querySelectorAll("details.more")) part.open = true; });
  addEventListener("keydown", (event) => current?.key(event));
  await follow();
  document.documentElement.dataset.ready = "true";
}

start();
