// The example of README.md runs and prints what the page shows.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFile, rm, writeFile } from "node:fs/promises";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { startWorker } from "./worker.js";

test("the example of the page runs as it is", async () => {
  const page = await readFile(new URL("../README.md", import.meta.url), "utf8");
  const [, code, output] = page.match(/^```js\n(.*?)^```\n```\n(.*?)^```$/ms);
  const worker = await startWorker();
  const file = fileURLToPath(new URL("./readme-example.mjs", import.meta.url)); // here, so that it finds the packages
  try {
    await writeFile(file, code.replace("nats://127.0.0.1:4222", worker.url));
    assert.equal((await promisify(execFile)(process.execPath, [file])).stdout, output);
  } finally {
    await rm(file, { force: true });
    await worker.stop();
  }
});
