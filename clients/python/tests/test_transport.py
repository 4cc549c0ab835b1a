"""Connections: rights, passwords, tokens, TLS, reconnects."""

import os
import pathlib
import shutil
import socket
import ssl
import subprocess
import tempfile
import threading
import unittest

from oneturn_client import Client, connect, nats_py
from oneturn_client.nats_protocol import Parser

from .worker import ROOT, WORKER, Worker

GREETING = {"chat": "c", "workflow": "Clients", "agent": "Greeter", "model": "Greeting", "data": {"name": "Ada"}}
LIBRARIES = ["socket"] + (["nats-py"] if nats_py.installed() else [])


class TransportTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="oneturn-python-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def worker(self, *flags, **options):
        worker = Worker(*flags, folder=self.folder, **options)
        self.addCleanup(worker.stop)
        return worker

    def test_a_publisher_of_a_tenant_has_the_rights_that_a_client_needs(self):
        turnctl = str(pathlib.Path(WORKER).with_name("turnctl"))
        accounts = pathlib.Path(self.folder, "accounts.conf")
        config = subprocess.run([turnctl, "nats-config", "--tenants", "acme"], check=True, capture_output=True, text=True, cwd=ROOT).stdout
        accounts.write_text(config, encoding="utf-8")
        names = {word.strip(",}") for word in config.split() if word.startswith("$") and word.strip(",}").endswith("_PASSWORD")}
        worker = self.worker("--accounts", str(accounts), env={name[1:]: "pw-" + name[1:].lower() for name in names})
        for library in LIBRARIES:
            with self.subTest(library):
                options = {"user": "acme-publisher", "password": "pw-acme_publisher_password", "library": library}
                with Client(worker.url, app="acme", inbox_prefix="_INBOX_publisher", **options) as client:
                    self.assertEqual(client.run_turn(turn="rights", **GREETING)["content"], "Hello, Ada!")
                    verdicts = []
                    client.run_turn(chat="c", turn=library, workflow="Clients", agent="Editor", model="Post", data={"title": "News"}, on_question=lambda q: (
                        verdicts.append(client.answer(chat="c", tool_call_id=q["tool_call_id"], value={"approved": True})["code"])))
                    self.assertEqual(verdicts, ["accepted"])
                if library == "socket":
                    with Client(worker.url, app="other", inbox_prefix="_INBOX_publisher", **options) as client, self.assertRaisesRegex(PermissionError, "Publish"):
                        client.publish_turn(turn="t", **GREETING)
                    with self.assertRaisesRegex(PermissionError, "Authorization"):
                        connect(worker.url, **{**options, "password": "wrong"})

    def test_user_and_password_may_be_in_the_url(self):
        worker = self.worker("--listen-user", "ada", "--listen-password", "p@ss/word")
        for library in LIBRARIES:
            with self.subTest(library), Client(worker.url.replace("//", "//ada:p%40ss%2Fword@"), library=library) as client:
                self.assertEqual(client.run_turn(turn="t", **GREETING)["content"], "Hello, Ada!")

    def test_a_client_connects_again_and_keeps_its_subscriptions(self):
        worker = self.worker()
        for library in LIBRARIES:
            with self.subTest(library), Client(worker.url, library=library) as client:
                self.assertEqual(client.run_turn(turn=library + "1", **GREETING)["content"], "Hello, Ada!")
                found = {}
                waiting = threading.Thread(target=lambda client=client: found.update(client.wait(chat="c", turn=library + "2", timeout=30)))
                waiting.start()
                worker.kill()
                worker = self.worker(port=worker.port)
                client.publish_turn(turn=library + "2", **GREETING)
                waiting.join(30)
                self.assertEqual(found["content"], "Hello, Ada!")

    @unittest.skipUnless(shutil.which("openssl"), "the openssl command is not installed")
    def test_tls_is_used_if_the_server_demands_it(self):
        files = [os.path.join(self.folder, name) for name in ("key.pem", "cert.pem")]
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost", "-addext",
                        "subjectAltName=IP:127.0.0.1", "-keyout", files[0], "-out", files[1]], check=True, capture_output=True)
        proxy = TLSProxy(self.worker().port, *files)
        self.addCleanup(proxy.close)
        for library in LIBRARIES:
            with self.subTest(library):
                with Client(proxy.url, tls=ssl.create_default_context(cafile=files[1]), library=library) as client:
                    data = {"text": "0123456789", "count": 70_000}
                    payload = client.run_turn(chat="c", turn=library, workflow="Clients", agent="Printer", model="Copies", data=data)["payload"]
                    self.assertEqual(len(client.fetch(payload)["text"]), 700_000)
        with self.assertRaises(ssl.SSLCertVerificationError):  # the default context does not know the certificate
            connect(proxy.url, library="socket")

    def test_a_token_is_sent(self):
        for options, url in (({"token": "s3cret"}, "nats://127.0.0.1:%d"), ({}, "nats://s3cret@127.0.0.1:%d")):
            with socket.create_server(("127.0.0.1", 0)) as server:
                sent = []
                threading.Thread(target=serve_connect, args=(server, sent)).start()
                connect(url % server.getsockname()[1], library="socket", **options).close()
                self.assertIn(b'"auth_token": "s3cret"', sent[0])

    def test_frames_arrive_in_any_pieces(self):
        data = b"INFO {}\r\nPING\r\nMSG a.b 7 5\r\nhe\r\no\r\nHMSG c 8 r 23 25\r\nNATS/1.0 503\r\nA: b \r\n\r\nxy\r\n-ERR 'no'\r\n"
        for size in (1, 2, 3, 7, len(data)):
            parser, frames = Parser(), []
            for start in range(0, len(data), size):
                frames += parser.feed(data[start:start + size])
            self.assertEqual([frame.kind for frame in frames], ["INFO", "PING", "MSG", "MSG", "-ERR"])
            self.assertEqual(frames[2].message.body, b"he\r\no")
            self.assertEqual((frames[3].number, frames[3].status, frames[3].message), (8, "503", ("c", {"A": "b"}, b"xy", "r")))

    def test_subjects_and_headers_cannot_smuggle_commands(self):
        worker = self.worker()
        nats = connect(worker.url, library="socket")
        self.addCleanup(nats.close)
        for subject, headers in (("a b", None), ("a\r\nPUB x 0", None), ("", None), ("a", {"A": "b\r\nC: d"})):
            with self.assertRaises(ValueError):
                nats.request(subject, b"", headers)


class TLSProxy:
    """A server that demands TLS, in front of a NATS server."""

    def __init__(self, port, key, cert):
        self._port, self._context = port, ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(cert, key)
        self._server = socket.create_server(("127.0.0.1", 0))
        self.url = "nats://127.0.0.1:%d" % self._server.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self):
        self._server.close()

    def _accept(self):
        while True:
            try:
                link, _ = self._server.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(link,), daemon=True).start()

    def _serve(self, link):
        with link, socket.create_connection(("127.0.0.1", self._port)) as upstream:
            with upstream.makefile("rb", 0) as stream:
                info = stream.readline()
            try:
                link.sendall(info.replace(b"{", b'{"tls_required":true,', 1))
                secure = self._context.wrap_socket(link, server_side=True)
            except OSError:
                return  # the client does not know the certificate
            with secure:
                back = threading.Thread(target=pump, args=(upstream, secure))
                back.start()
                pump(secure, upstream)
                back.join()


def pump(source, target):
    try:
        while data := source.recv(65536):
            target.sendall(data)
        target.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass


def serve_connect(server, sent):
    """Answers the first messages of one connection."""
    link, _ = server.accept()
    with link:
        link.sendall(b'INFO {"max_payload": 1000}\r\n')
        sent.append(link.makefile("rb").readline())
        link.sendall(b"PONG\r\n")
