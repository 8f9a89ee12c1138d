// Markdown as elements, for texts that nobody trusts: every word becomes a text node. Nothing is loaded, and nothing can be
// followed: links and images are words with their addresses behind them.

const INLINE = /(`+)(.+?)\1|(\*\*|__)(?=\S)(.+?)(?<=\S)\3|([*_])(?=\S)(.+?)(?<=\S)\5|!?\[([^\]\n]*)\]\(([^()\s]+)[^()\n]*\)/u;
const DEEPEST = 8; // parts within parts
const LONGEST_LINE = 2000; // characters in which parts are looked for

// A text with its code, emphasis, links and images.
function inlineMarkdown(text, depth = 0) {
  if (depth === DEEPEST) return [shown(text)];
  return text.split(/(?<=\n)/).flatMap((line) => (line.length > LONGEST_LINE ? [shown(line)] : partsOfLine(line, depth)));
}

function partsOfLine(line, depth) {
  const inner = (part) => inlineMarkdown(part, depth + 1);
  const parts = [];
  let rest = line;
  for (let found = INLINE.exec(rest); found; found = INLINE.exec(rest)) {
    const [whole, , code, , strong, , emphasis, label, address] = found;
    parts.push(shown(rest.slice(0, found.index)));
    if (code != null) parts.push(make("code", {}, shown(code)));
    else if (strong != null) parts.push(make("strong", {}, ...inner(strong)));
    else if (emphasis != null) parts.push(make("em", {}, ...inner(emphasis)));
    else parts.push(...inner(label), make("span", { className: "note" }, " (", shown(address), ")"));
    rest = rest.slice(found.index + whole.length);
  }
  return [...parts, shown(rest)];
}

const cellsOf = (line) => line.trim().replace(/^\||\|$/g, "").split("|").map((cell) => cell.trim());

function tableOf(lines) {
  const row = (line, tag) => make("tr", {}, ...cellsOf(line).map((cell) => make(tag, {}, ...inlineMarkdown(cell))));
  return make("table", {}, make("thead", {}, row(lines[0], "th")), make("tbody", {}, ...lines.slice(2).map((line) => row(line, "td"))));
}

// The kinds of blocks: how their first line begins, which lines go on, and what is made of the lines.
const BLOCKS = [
  { begins: /^(```|~~~)/, goesOn: (line, first, before) => before.length === 1 || !before.at(-1).startsWith(first.slice(0, 3)), make: (lines) =>
    make("pre", { className: "text" }, shown(lines.slice(1, lines.at(-1).startsWith(lines[0].slice(0, 3)) && lines.length > 1 ? -1 : undefined).join("\n"))) },
  { begins: /^#{1,6}\s/, goesOn: () => false, make: ([line]) => make("p", {}, make("strong", {}, ...inlineMarkdown(line.replace(/^#+\s+/, "")))) },
  { begins: /^\s*([-*_])(\s*\1){2,}\s*$/, goesOn: () => false, make: () => make("hr") },
  { begins: /^>/, goesOn: (line) => line.startsWith(">"), make: (lines) => make("blockquote", {}, ...inlineMarkdown(lines.map((line) => line.replace(/^>\s?/, "")).join("\n"))) },
  { begins: /^\s*[-*+]\s/, goesOn: (line) => /^\s*[-*+]\s|^\s+\S/.test(line), make: (lines) => listOf("ul", lines, /^\s*[-*+]\s+/) },
  { begins: /^\s*\d+[.)]\s/, goesOn: (line) => /^\s*\d+[.)]\s|^\s+\S/.test(line), make: (lines) => listOf("ol", lines, /^\s*\d+[.)]\s+/) },
];

function listOf(tag, lines, mark) {
  const items = [];
  for (const line of lines) {
    if (mark.test(line)) items.push(line.replace(mark, ""));
    else items.push(`${items.pop()}\n${line.trim()}`);
  }
  return make(tag, {}, ...items.map((item) => make("li", {}, ...inlineMarkdown(item))));
}

// A text as Markdown: an element.
function markdownOf(text) {
  const lines = text.replace(/\r\n?/g, "\n").split("\n");
  const element = make("div", { className: "markdown", dir: "auto" });
  for (let at = 0; at < lines.length;) {
    const first = lines[at];
    let end = at + 1;
    const kind = BLOCKS.find(({ begins }) => begins.test(first));
    const isTable = first.includes("|") && /^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$/.test(lines[end] ?? "") && (lines[end] ?? "").includes("|");
    if (kind) {
      while (end < lines.length && kind.goesOn(lines[end], first, lines.slice(at, end))) end += 1;
      element.append(kind.make(lines.slice(at, end)));
    } else if (isTable) {
      while (end < lines.length && lines[end].includes("|")) end += 1;
      element.append(tableOf(lines.slice(at, end)));
    } else if (first.trim()) {
      const goesOn = (line) => line.trim() && !BLOCKS.some(({ begins }) => begins.test(line));
      while (end < lines.length && goesOn(lines[end])) end += 1;
      element.append(make("p", {}, ...inlineMarkdown(lines.slice(at, end).join("\n"))));
    }
    at = end;
  }
  return element;
}
