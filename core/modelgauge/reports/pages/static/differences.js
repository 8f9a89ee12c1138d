// Where two texts differ, word by word; texts that share too little, or are too long for that, are shown as they are.

const MOST_PAIRS = 4e6; // of words that are compared: a tenth of a second
const ALIKE = 0.6; // share of the words of the longer text that both have, from which on differences are marked

// For each of two lists whether its elements are in their longest common sequence.
function commonParts(ones, others) {
  let start = 0;
  while (start < ones.length && start < others.length && ones[start] === others[start]) start += 1;
  let end = 0;
  while (end < Math.min(ones.length, others.length) - start && ones.at(-1 - end) === others.at(-1 - end)) end += 1;
  const [rows, columns] = [ones.length - start - end, others.length - start - end];
  if (rows * columns > MOST_PAIRS) return null;
  const wide = columns + 1;
  const lengths = new Uint32Array((rows + 1) * wide);
  for (let i = rows - 1; i >= 0; i -= 1) {
    for (let j = columns - 1; j >= 0; j -= 1) {
      const at = i * wide + j;
      lengths[at] = ones[start + i] === others[start + j] ? lengths[at + wide + 1] + 1 : Math.max(lengths[at + wide], lengths[at + 1]);
    }
  }
  const common = [ones, others].map((words) => words.map((_, place) => place < start || place >= words.length - end));
  for (let i = 0, j = 0; i < rows && j < columns;) {
    const at = i * wide + j;
    if (ones[start + i] === others[start + j]) { common[0][start + i] = common[1][start + j] = true; i += 1; j += 1; }
    else if (lengths[at + wide] >= lengths[at + 1]) i += 1;
    else j += 1;
  }
  return common;
}

// A text in its box, in which `tag` marks what the other text does not have.
function differenceBox(text, other, tag) {
  const plain = () => box(text, "answer prose");
  if (other == null || text === other || text.length > MOST_SHOWN || other.length > MOST_SHOWN) return plain();
  const words = [text, other].map((each) => each.match(/[\p{L}\p{N}_]+|\s+|[^\p{L}\p{N}_\s]/gu) ?? []);
  const common = commonParts(...words);
  const shared = common ? common[0].filter(Boolean).length : 0;
  if (shared < ALIKE * Math.max(words[0].length, words[1].length)) return plain();
  const content = make("pre", { className: "text answer prose", dir: "auto" });
  for (let place = 0; place < words[0].length;) {
    let end = place;
    while (end < words[0].length && common[0][end] === common[0][place]) end += 1;
    const part = shown(words[0].slice(place, end).join(""));
    content.append(common[0][place] ? part : make(tag, {}, part));
    place = end;
  }
  return content;
}
