"""A worker that lies once, after its second item. Its argument names the lie."""

import os
import sys

from modelgauge.engine.executors.messages import packed, unpacked
from modelgauge.workers import __main__ as worker
from modelgauge.workers import serving

ENDLESS = b"x" * (1 << 20)
GROWTH = [1, 0, [], {}]


def altered(line, old, new):
    """Return a record of the same item with other contents."""
    kind, fields, body = unpacked(line.rstrip(b"\n"))
    assert old in body, body
    return packed(kind, *fields, body=body.replace(old, new, 1))


LIES = {
    "bytes that are no text": lambda line: b"\xff\x00\xfe\n",
    "an empty line": lambda line: b"\n",
    "no list": lambda line: b'{"kind": "record"}\n',
    "an empty list": lambda line: b"[]\n",
    "a list as kind": lambda line: b"[[], 1]\n",
    "deep nesting": lambda line: b"[" * 100_000 + b"\n",
    "an unknown kind": lambda line: packed("hello", 1),
    "too few fields": lambda line: packed("record", 0),
    "an item it was not given": lambda line: packed("record", 0, 9999, body=unpacked(line.rstrip())[2]),
    "a work that is none": lambda line: packed("record", 1, 0, body=unpacked(line.rstrip())[2]),
    "a work before the first": lambda line: packed("tally", -1, [GROWTH] * 3),
    "the record of another item": lambda line: altered(line, b'"id":"item ', b'"id":"item 7'),
    "a record of another place": lambda line: altered(line, b'"index":', b'"index":1'),
    "another prompt": lambda line: altered(line, b'"text":"word ', b'"text":"sword '),
    "a key that is none": lambda line: altered(line, b'"key":"', b'"key":"../'),
    "a measurement that is no number": lambda line: altered(line, b'"length":', b'"length":"many","x":'),
    "half a record": lambda line: line[:-20] + b"\n",  # of several records, the last one
    "the same record twice": lambda line: line + line,
    "a given-up item it was not given": lambda line: packed("stopped", 0, 9999, "a", "b"),
    "negative counts": lambda line: packed("tally", 0, [[-5, 0, [], {}], GROWTH, GROWTH]),
    "negative unkept": lambda line: packed("tally", 0, [[0, 0, [], {"x": -1}], GROWTH, GROWTH]),
    "two tallies": lambda line: packed("tally", 0, [GROWTH] * 2),
    "negative tokens": lambda line: packed("settle", 0, 0, {"input_tokens": -5}),
    "negative seconds": lambda line: packed("left", 0, "ok", -1.0, True),
    "an outcome that is none": lambda line: packed("left", 0, "splendid", 1.0, True),
    "seconds that are no number": lambda line: packed("failed", 0, ["soon", False, False], "x"),
    "a target that is none": lambda line: packed("enter", 9999, 7, 0),
    "a report that nobody asked for": lambda line: packed("reported", 0, ["all is well"]),
    "a log that is none": lambda line: packed("log", 3, "high", []),
    "an endless line": None,
}


class Liar(serving._Outbox):
    """Sends a lie instead of the second record."""

    records = 0

    def append(self, data):
        self.records += data.startswith(b'["record"')
        if self.records == 2 and data.startswith(b'["record"'):
            if (lie := LIES[sys.argv[1]]) is None:
                while True:
                    super().append(ENDLESS)
                    self.empty()
            data = lie(data)
        super().append(data)


if __name__ == "__main__":
    os.environ.pop("PYTHONPATH", None)
    serving._Outbox = Liar
    worker.main()
