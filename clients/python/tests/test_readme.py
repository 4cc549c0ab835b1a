"""The example of README.md runs and prints what the page shows."""

import pathlib
import re
import subprocess
import sys
import unittest

from .worker import Worker

FOLDER = pathlib.Path(__file__).resolve().parents[1]


class ReadmeTest(unittest.TestCase):
    def test_the_example_of_the_page_runs_as_it_is(self):
        code, output = re.search(r"^```python\n(.*?)^```\n```\n(.*?)^```$", (FOLDER / "README.md").read_text(encoding="utf-8"), re.M | re.S).groups()
        worker = Worker()
        self.addCleanup(worker.stop)
        printed = subprocess.run([sys.executable, "-c", code.replace("nats://127.0.0.1:4222", worker.url)], cwd=FOLDER, capture_output=True, text=True,
                                 timeout=60)
        self.assertEqual(printed.stdout, output, printed.stderr)
