// A table with search, filters and sorting, and a view of one of its items. A model says what stands there:
//   address        names and values of the part of the page, for its address
//   ids            the name of each item, by its place
//   columns        { title, text(place) } of each column, behind the numbers of the items; number: aligned on the right,
//                  wide: takes the room that there is, spare: left out on narrow screens, look(place): classes of a cell
//                  change: two numbers with an arrow between them
//                  isOptional: people choose whether it isShown, reason: holds a short sentence
//   filters        { name, title, options: [value, text][], keeps(value) -> whether it keeps a place }; "" is the first value;
//                  folded: behind "more filters"
//   order          { title, key(place) } of the way that is sorted at first, if that is not the order of the items
//   sorts          { value, title, key(place) } of each way to sort, besides the order of the items
//   finds(place, query)  whether a text in lower case is in an item; where not all is read at first, `read` is a promise of that
//   look(place)    classes of the row
//   rowHeight      in pixels; by default that of one line
//   view(place)    a promise of the elements that show the item

const ROW = 34; // pixels

const classesOf = (column) => ["number", "wide", "spare", "reason", "change"].filter((name) => column[name]).join(" ");

class Items {
  constructor(root, model) {
    this.model = model;
    this.find = (query) => root.querySelector(query);
    this.controls = this.find(".controls");
    this.viewport = this.find(".table");
    this.sheet = this.find(".item");
    this.chosen = 0; // the place among those that are listed
    this.listed = [];
    this.count = model.ids.length;
    this.body = make("tbody");
    this.head = make("thead");
    this.table = make("table", {}, this.head, this.body);
    this.rowHeight = model.rowHeight ?? ROW;
    this.table.style.setProperty("--row", `${this.rowHeight}px`);
    this.choose("");
    this.table.setAttribute("aria-rowcount", this.count + 1);
    this.body.onclick = (event) => {
      const row = event.target.closest("tr[data-place]");
      if (row) this.open(Number(row.dataset.place));
    };
    new ResizeObserver(() => this.draw()).observe(this.viewport);
    this.isRead = false;
    model.read?.then(() => { this.isRead = true; if (this.controls.q.value) this.list(); });
  }

  // Take the place of another table in the same part of the page.
  enter() {
    if (this.table.isConnected) return;
    this.fillControls();
    this.viewport.replaceChildren(this.table);
    this.viewport.onscroll = () => this.draw();
    this.controls.oninput = () => this.setAddress();
    this.controls.onsubmit = (event) => event.preventDefault();
  }

  fillControls() {
    const select = (name, title, options) => make("label", {}, shown(title), " ", make("select", { name },
      ...options.map(([value, text]) => make("option", { value }, shown(text)))));
    const sorts = [["", this.model.order?.title ?? "in order"], ...this.model.sorts.map((sort) => [sort.value, sort.title])];
    const selects = (filters) => filters.map((filter) => select(filter.name, filter.title, filter.options));
    const rest = this.model.filters.filter((filter) => filter.folded);
    this.more = rest.length ? folded(`more filters (${rest.length})`, make("p", { className: "folded" }, ...selects(rest))) : "";
    this.find(".filters").replaceChildren(
      ...selects(this.model.filters.filter((filter) => !filter.folded)), select("sort", "Sort", sorts), this.more, this.columnChoice());
  }

  columnChoice() {
    const optional = this.model.columns.filter((column) => column.isOptional);
    this.choice = optional.length ? columnChoice(optional) : null;
    return this.choice?.element ?? "";
  }

  // Show the columns that an address names, or the usual ones.
  choose(names) {
    const chosen = chosenTitles(names);
    const isShown = (column) => !column.isOptional || (chosen ? chosen.includes(column.title) : column.isShown);
    this.columns = this.model.columns.filter(isShown);
    this.choice?.show(names);
    this.head.replaceChildren(make("tr", {}, ...[{ title: "#", number: true }, ...this.columns].map((column) =>
      make("th", { scope: "col", className: classesOf(column) }, ...breakable(column.title)))));
  }

  // The address says what is searched, filtered, sorted and open: it can be shared.
  setAddress(item = null) {
    const address = new URLSearchParams(this.model.address);
    for (const [name, value] of new FormData(this.controls)) if (value) address.set(name, value);
    if (item !== null) address.set("item", this.model.ids[item]);
    const next = `#${address}`;
    if (next === location.hash) this.follow(address);
    else if (item === null) { history.replaceState(null, "", next); this.follow(address); } // no step back for each letter
    else location.hash = next;
  }

  follow(address) {
    this.enter();
    for (const field of this.controls.elements) if (field.name) field.value = address.get(field.name) ?? "";
    if (this.more && this.model.filters.some((filter) => filter.folded && address.get(filter.name))) this.more.open = true;
    this.choose(address.get("columns") ?? "");
    this.list();
    const id = address.get("item");
    const place = id === null ? -1 : this.model.ids.indexOf(id);
    if (place >= 0) this.show(place);
    else this.showTable();
  }

  // Bring the items into sight where a link asked for some of them: it may be far above or below.
  reveal() {
    const isAsked = [...new FormData(this.controls).values()].some(Boolean);
    const { top } = this.controls.getBoundingClientRect();
    if (isAsked && this.sheet.hidden && (top < 0 || top > innerHeight / 2)) this.controls.scrollIntoView();
  }

  list() {
    const { model, controls } = this;
    const query = controls.q.value.toLowerCase();
    const kept = model.filters.map((filter) => filter.keeps(controls.elements[filter.name].value)).filter(Boolean);
    this.listed = [];
    for (let place = 0; place < this.count; place += 1) {
      if (kept.every((keeps) => keeps(place)) && (!query || model.finds(place, query))) this.listed.push(place);
    }
    const sort = model.sorts.find((each) => each.value === controls.sort.value) ?? model.order;
    if (sort) this.listed.sort((one, other) => (sort.key(one) < sort.key(other) ? -1 : sort.key(one) > sort.key(other) ? 1 : one - other));
    this.chosen = Math.min(this.chosen, Math.max(0, this.listed.length - 1));
    const pending = query && model.read && !this.isRead ? ", reading on" : "";
    this.find("output").textContent = `${counted(this.listed.length)} of ${counted(this.count)}${pending}`;
    this.draw();
  }

  // Only the rows in sight are in the page; two empty rows keep the room of the others.
  draw() {
    if (!this.table.isConnected) return;
    const first = Math.max(0, Math.floor(this.viewport.scrollTop / this.rowHeight) - 5);
    const last = Math.min(this.listed.length, first + Math.ceil(this.viewport.clientHeight / this.rowHeight) + 10);
    const room = (count) => {
      const row = make("tr", { "aria-hidden": "true" }, make("td"));
      row.style.height = `${count * this.rowHeight}px`;
      return row;
    };
    const rows = [];
    for (let at = first; at < last; at += 1) rows.push(this.row(this.listed[at], at));
    const empty = this.listed.length ? [] : [make("tr", {}, make("td", { colSpan: 1 + this.columns.length }, "No item matches."))];
    this.body.replaceChildren(room(first), ...rows, ...empty, room(this.listed.length - last));
  }

  row(place, at) {
    const { model } = this;
    const address = new URLSearchParams([...Object.entries(model.address), ["item", model.ids[place]]]);
    const link = make("a", { href: `#${address}`, tabIndex: -1 }, String(place + 1));
    const cells = this.columns.map((column) =>
      make("td", { className: `${classesOf(column)} ${column.look?.(place) ?? ""}`, dir: "auto", ...column.reason && { title: column.text(place) } }, this.content(column, place)));
    const row = make("tr", { className: `${model.look(place)}${at === this.chosen ? " chosen" : ""}` },
      make("td", { className: "number" }, link), ...cells);
    row.dataset.place = place;
    row.setAttribute("aria-rowindex", at + 2);
    return row;
  }

  // The text of a cell; of long ones as many lines as the row has room for.
  content(column, place) {
    const text = shown(column.text(place));
    return this.rowHeight > ROW && (column.reason || column.wide) ? make("span", { className: "lines" }, text) : text;
  }

  showTable() {
    this.wanted = null;
    this.sheet.hidden = true;
    this.viewport.hidden = this.controls.hidden = false;
    this.draw();
  }

  open(place) {
    this.setAddress(place);
  }

  async show(place) {
    const at = this.listed.indexOf(place);
    if (at >= 0) this.chosen = at;
    this.wanted = place;
    const content = await this.model.view(place);
    if (this.wanted !== place) return; // another was asked for meanwhile
    const where = at < 0 ? "not among those listed" : `${counted(at + 1)} of ${counted(this.listed.length)} listed`;
    const button = (text, action) => make("button", { type: "button", onclick: action }, text);
    const title = make("h2", { tabIndex: -1 }, `Item ${place + 1} `, make("code", {}, shown(this.model.ids[place])));
    const moves = make("p", { className: "moves" }, where, " ", button("← previous", () => this.step(-1)),
      button("next →", () => this.step(1)), copyButton(), button("back to the table", () => this.back()));
    this.sheet.replaceChildren(title, moves, ...content);
    this.sheet.hidden = false;
    this.viewport.hidden = this.controls.hidden = true;
    this.sheet.scrollIntoView({ block: "nearest" });
    title.focus({ preventScroll: true });
  }

  step(by) {
    const at = Math.min(Math.max(this.chosen + by, 0), this.listed.length - 1);
    if (at < 0) return;
    this.chosen = at;
    if (!this.sheet.hidden) this.open(this.listed[at]);
    else {
      const top = at * this.rowHeight;
      if (top < this.viewport.scrollTop) this.viewport.scrollTop = top;
      const least = top + 2 * this.rowHeight - this.viewport.clientHeight + this.rowHeight;
      if (least > this.viewport.scrollTop) this.viewport.scrollTop = least;
      this.draw();
    }
  }

  back() {
    this.setAddress();
    this.viewport.focus({ preventScroll: true });
  }

  key(event) {
    const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
    if (event.ctrlKey || event.metaKey || event.altKey || (typing && event.key !== "Escape")) return;
    const isOpen = !this.sheet.hidden;
    const opens = !isOpen && this.listed.length > 0 && !/^(A|BUTTON|SUMMARY)$/.test(event.target.tagName);
    const actions = {
      j: () => this.step(1),
      k: () => this.step(-1),
      ArrowRight: isOpen && (() => this.step(1)),
      ArrowLeft: isOpen && (() => this.step(-1)),
      Enter: opens && (() => this.open(this.listed[this.chosen])),
      Escape: () => (isOpen ? this.back() : event.target.blur()),
      "/": () => { if (isOpen) this.back(); this.controls.q.focus(); },
    };
    if (!actions[event.key]) return void (isOpen && this.sheet.querySelector(`[data-key="${CSS.escape(event.key)}"]`)?.click());
    event.preventDefault();
    actions[event.key]();
  }
}
