"""The functions of the suite in package conformance, as a service on Python's standard library
and the client of examples/03-nats-service."""

import json
import os
import queue
import sys
import threading
import urllib.parse

import nats


class Failure(Exception):
    def __init__(self, code, message):
        super().__init__(message)
        self.code = code


class Call:
    def __init__(self, connection, message):
        self.connection, self.message, self.ended = connection, message, threading.Event()
        self.inbox, self.replies, self.count = "_INBOX.%s" % os.urandom(8).hex(), {}, 0
        self.subscription = connection.subscribe(self.inbox + ".*", self.replied)
        self.watch()

    def replied(self, message):
        self.replies[message.subject](message)

    def send(self, kind, body, take):
        self.count += 1
        reply = "%s.%d" % (self.inbox, self.count)
        self.replies[reply] = take
        self.connection.publish(self.message.reply, json.dumps(body).encode(), reply=reply, headers={"Oneturn-Kind": kind})

    def host_operation(self, kind, **body):
        got = queue.Queue()
        self.send(kind, body, got.put)
        reply = got.get(timeout=60)
        code = reply.headers.get("Oneturn-Error-Code")
        if code:
            raise Failure(code, reply.headers.get("Nats-Service-Error", ""))
        return json.loads(reply.body)

    def watch(self):
        self.send("end", None, lambda _: self.ended.set())

    def header(self, name):
        return urllib.parse.unquote(self.message.headers.get("Oneturn-" + name, ""))

    def respond(self, body, headers=None):
        self.connection.publish(self.message.reply, body, headers=headers)
        self.connection.unsubscribe(self.subscription)


def write(note, line):
    if note:
        with open(note, "a") as f:
            f.write(line + "\n")


def slow(call, seconds, note=""):
    write(note, "begun")
    if call.ended.wait(seconds):
        write(note, "cancelled")


def crash(call, note=""):
    write(note, "begun")
    os._exit(3)


def progress(call):
    for i in (1, 2, 3):
        body = json.dumps({"percent": 25 * i, "message": "step %d" % i}).encode()
        call.connection.publish(call.message.reply, body, headers={"Oneturn-Kind": "progress"})
    return {"done": True}


def fail_user(call):
    raise Failure("user_error", "no such city")


def fail(call):
    raise Failure("tool_error", "it broke")


def busy(call, succeeds_at):
    attempt = int(call.header("Attempt"))
    if attempt < succeeds_at:
        raise Failure("retryable", "busy")
    return {"attempt": attempt}


def identity(call):
    return {
        "idempotency_key": call.header("Idempotency-Key"), "fencing_token": int(call.header("Fencing-Token")),
        "epoch": int(call.header("Epoch")), "attempt": int(call.header("Attempt")), "depth": int(call.header("Depth") or 0),
    }


functions = {
    "echo": lambda call, /, **args: args, "fail_user": fail_user, "fail": fail, "busy": busy, "slow": slow, "crash": crash,
    "progress": progress, "big": lambda call, bytes: {"text": "x" * bytes}, "identity": identity,
    "ask": lambda call: {"color": call.host_operation("ask", name="color", tool="Color")["value"]}, "null": lambda call: None,
}


answers = {
    "garbage": (b"{this is not JSON",), "text": (b"done", {"Content-Type": "text/plain"}), "marked": (b"\xef\xbb\xbf {\"ok\": true}\r\n",),
    "nan": (json.dumps({"count": float("nan")}).encode(),), "huge": (json.dumps({"number": 10 ** 80}).encode(),),
    "lowly": (b"", {"oneturn-error-code": "user_error", "nats-service-error": "no such city"}),
    "later": (b"", {"Oneturn-Error-Code": "retryable", "Nats-Service-Error": "busy", "Retry-After": "7"}),
}


def answer(connection, name, message):
    call = Call(connection, message)
    if name in answers:
        call.respond(*answers[name])
        return
    try:
        call.respond(json.dumps(functions[name](call, **json.loads(message.body))).encode())
    except Failure as failure:
        call.respond(b"", {"Oneturn-Error-Code": failure.code, "Nats-Service-Error": str(failure)})


def serve(connection, prefix, name):
    def take(message):
        threading.Thread(target=answer, args=(connection, name, message), daemon=True).start()

    connection.subscribe(prefix + "." + name, take, queue="q")


def main(url, prefix):
    connection = nats.connect(url)
    for name in [*functions, *answers]:
        serve(connection, prefix, name)
    connection.flush()
    print("ready", flush=True)
    connection.run()


main(*sys.argv[1:])
