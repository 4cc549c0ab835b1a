"""Starts a worker with an embedded server for the tests. Go builds it, see `make clients`."""

import os
import pathlib
import shutil
import socket
import subprocess
import tempfile
import threading

ROOT = pathlib.Path(__file__).resolve().parents[3]
WORKER = os.environ.get("ONETURN_WORKER", str(ROOT / "bin/worker"))


class Worker:
    """A worker with the workflows of the tests and of the first example; url is its server's."""

    def __init__(self, *flags, env=None, port=None, folder=None):
        self.folder = folder or tempfile.mkdtemp(prefix="oneturn-python-")
        workflows = pathlib.Path(self.folder, "workflows")
        for source in (ROOT / "clients/testdata/workflows", ROOT / "examples/01-hello/workflows"):
            shutil.copytree(source, workflows, dirs_exist_ok=True)
        self.port = port or free_port()
        self.url = "nats://127.0.0.1:%d" % self.port
        self.process = subprocess.Popen(
            [WORKER, "--workflows", str(workflows), "--store", self.folder + "/data", "--listen", "127.0.0.1:%d" % self.port, "--http", "off", *flags],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env={**os.environ, **(env or {})})
        printed = []
        for line in self.process.stdout:
            printed.append(line)
            if " is ready" in line:
                self._reader = threading.Thread(target=self.process.stdout.read, daemon=True)  # so that its pipe never fills
                self._reader.start()
                return
        raise RuntimeError("the worker ended:\n" + "".join(printed))

    def kill(self):
        """Ends the worker and its server, and keeps what it has stored."""
        self.process.kill()
        self.process.wait()
        self._reader.join()
        self.process.stdout.close()

    def stop(self):
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]
