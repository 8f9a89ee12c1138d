// Edits that are not saved yet, kept by the browser: they outlive a reload and a crash, and the next visit offers them.

const BEGINNING = "modelgauge draft ";

// The browser's storage; null where it is forbidden.
export const storage = (() => {
  try {
    return localStorage;
  } catch {
    return null;
  }
})();

// The drafts of one data set. Each visit of its page, in each window, has a draft of its own.
export class Drafts {
  constructor(address) {
    this.of = `${BEGINNING}${address} `;
    this.own = this.of + [...crypto.getRandomValues(new Uint32Array(4))].map((part) => part.toString(36)).join("");
    this.kept = null;
    addEventListener("storage", ({ key, newValue }) => {
      if (key === this.own && newValue === null && this.kept) storage.setItem(key, this.kept); // another window discarded it
    });
  }

  // Keep a list of rows, and the texts beside the table; return whether the browser could.
  keep(base, rows, list, texts) {
    const packed = list.map(({ row, origin }) => (origin !== null && rows.saved[origin] === row ? origin : [origin, row]));
    const draft = JSON.stringify({ base, list: packed, extra: [...rows.extra], time: Date.now(), ...texts });
    try {
      storage?.setItem(this.own, draft);
    } catch {
      return false; // it is too large, which the page says; what was kept before stays
    }
    this.kept = storage && draft;
    return Boolean(storage);
  }

  forget() {
    this.kept = null;
    this.discard(this.own);
  }

  // Remove a draft; return what puts it back.
  discard(key) {
    const text = storage?.getItem(key);
    storage?.removeItem(key);
    return () => storage?.setItem(key, text);
  }

  // The drafts of other visits that were made of one of these versions, or of none; the newest comes first.
  found(versions) {
    const keys = Object.keys(storage ?? {}).filter((key) => key.startsWith(this.of) && key !== this.own);
    const isKnown = ({ base }) => !base || versions.some((version) => version.number === base.number && version.content_hash === base.content_hash);
    return keys
      .map((key) => ({ key, ...JSON.parse(storage.getItem(key)) }))
      .filter(isKnown)
      .sort((one, other) => other.time - one.time);
  }
}

// The rows that a draft holds, as edits of those that it was made of.
export function unpacked(draft, rows) {
  return draft.list.map((item) => (typeof item === "number" ? rows.list[item] : { ...rows.made(item[1]), origin: item[0] }));
}
