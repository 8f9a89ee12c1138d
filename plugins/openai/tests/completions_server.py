"""A server of text completions over a made-up model, which writes log-probabilities as well-known servers do.

The forms are those of the servers' sources:

- `openai`: API reference, "Create completion".
- `vllm`: 030ea52, `vllm/entrypoints/openai/completion/serving.py`: the token that prompts begin with counts for
  `text_offset`, and `prompt_logprobs` has the tokens of the prompt by their ids.
- `sglang`: 0101654, `python/sglang/srt/entrypoints/openai/utils.py`: `text_offset` is -1.
- `sentencepiece`: either of these with a tokenizer whose tokens lose a space at their beginning when they are decoded.
- `tgi`: 3.3, `router/src/server.rs`, and `ollama`: no log-probabilities of texts.
"""

import json
import re
import threading
import zlib
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

BEGIN = "<|begin|>"
PIECES = re.compile(r"<\|\w+\|>| ?[^\W\d_]+|\d| ?[^\w\s]+|\s+")


def pieces(text):
    """The tokens of a text: words with the space before them, digits, marks, white space."""
    return PIECES.findall(text)


def logprob(before, token):
    return -1 - zlib.crc32(f"{before}|{token}".encode()) % 1000 / 100


def best(before, token):
    """The log-probability of the likeliest token: of two in three places, not this one."""
    own = logprob(before, token)
    return own if zlib.crc32(f"{token}|{before}".encode()) % 3 == 0 else own / 2


def scores(context, continuation):
    """The oracle: the log-probabilities of a continuation's tokens, and whether all of them are the likeliest."""
    stripped = context.rstrip()
    tokens = [BEGIN, *pieces(context + continuation)]
    scored = range(1 + len(pieces(stripped)), len(tokens))
    own = [logprob(tokens[at - 1], tokens[at]) for at in scored]
    return own, own == [best(tokens[at - 1], tokens[at]) for at in scored]


class Answers:
    """Makes the body of an answer.

    Args:
        style: the server whose form it has.
        begins: the token that prompts begin with; None if the tokenizer adds none.
        generated: the token that is generated behind each prompt.
        change: gets the body before it is sent.
    """

    def __init__(self, style="openai", begins=BEGIN, generated=" on", change=lambda body: body):
        self.style, self.begins, self.generated, self.change = style, begins, generated, change

    def body(self, asked):
        prompts = asked["prompt"] if isinstance(asked["prompt"], list) else [asked["prompt"]]
        choices = [self._choice(place, prompt, asked) for place, prompt in enumerate(prompts)]
        tokens = sum(len(self._tokens(prompt)) for prompt in prompts)
        usage = {"prompt_tokens": tokens, "completion_tokens": len(prompts)}
        marks = {"tgi": "3.3.6-native", "ollama": "fp_ollama"}
        body = {"object": "text_completion", "choices": choices, "usage": usage}
        if self.style in marks:
            body["system_fingerprint"] = marks[self.style]
        return self.change(body)

    def _tokens(self, prompt):
        return [*([self.begins] if self.begins else []), *pieces(prompt)]

    def _choice(self, index, prompt, asked):
        echoes = asked.get("echo") and self.style not in ("tgi", "ollama")
        tokens = [*self._tokens(prompt), self.generated]
        shown = tokens if echoes else tokens[-1:]
        choice = {
            "index": index,
            "text": (prompt if echoes else "") + self.generated,
            "finish_reason": "length",
        }
        if asked.get("logprobs") is None or self.style in ("tgi", "ollama"):
            return {**choice, "logprobs": None}
        begin = len(tokens) - len(shown)
        places = [(tokens[at - 1] if at else None, tokens[at]) for at in range(begin, len(tokens))]
        choice["logprobs"] = {
            "tokens": [self._written(token) for _, token in places],
            "token_logprobs": [
                None if before is None else logprob(before, token) for before, token in places
            ],
            "top_logprobs": [self._top(before, token) for before, token in places],
            "text_offset": self._offsets([self._written(token) for _, token in places]),
        }
        if self.style == "vllm" and echoes:
            choice["prompt_logprobs"] = [self._by_id(*place) for place in places[:-1]]
        return choice

    def _written(self, token):
        return token.removeprefix(" ") if self.style == "sentencepiece" else token

    def _top(self, before, token):
        if before is None:
            return None
        top = {self._written(token): logprob(before, token)}
        return top if best(before, token) == logprob(before, token) else top | {" zzz": best(before, token)}

    def _by_id(self, before, token):
        if before is None:
            return None
        top = [(token, logprob(before, token)), (" zzz", best(before, token))]
        return {
            str(zlib.crc32(text.encode())): {"logprob": value, "rank": 2 - rank, "decoded_token": text}
            for rank, (text, value) in enumerate(top[: 1 + (top[0][1] != top[1][1])])
        }

    def _offsets(self, tokens):
        if self.style in ("sglang", "sentencepiece"):
            return [-1] * len(tokens)
        shown = tokens if self.style == "vllm" else tokens[bool(self.begins) :]
        offsets = [sum(map(len, shown[:place])) for place in range(len(shown))]
        return [*[0] * (len(tokens) - len(shown)), *offsets]


@contextmanager
def completions_server(answers, takes_several=True):
    """Run a server. Yield its base URL and the list of requests.

    Args:
        answers: to requests of one prompt, or of several if it takes them.
        takes_several: False, or the body of an error with status 500, for several.
    """
    asked = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            asked.append(request)
            if not self.path.endswith("/v1/completions"):
                self._reply(404, {"error": {"message": "Not Found"}})
            elif isinstance(request["prompt"], list) and takes_several is not True:
                self._reply(
                    500 if takes_several else 400, takes_several or {"detail": "prompt must be a string."}
                )
            else:
                self._reply(200, answers.body(request))

        def _reply(self, status, body):
            data = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *args):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,)).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/v1", asked
        finally:
            server.shutdown()
