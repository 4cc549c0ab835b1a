// Starts a worker with an embedded server for a test file. Go builds it, see `make clients`.

import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { cp, mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const root = fileURLToPath(new URL("../../..", import.meta.url));

const binary = process.env.ONETURN_WORKER ?? join(root, "bin/worker");

/** Starts a worker with the workflows of the tests and of the first example: {url, kill, stop}; again, what kill has ended. */
export async function startWorker(flags = [], env = {}, again = undefined) {
  const dir = again?.dir ?? (await mkdtemp(join(tmpdir(), "oneturn-js-")));
  await cp(join(root, "clients/testdata/workflows"), join(dir, "workflows"), { recursive: true });
  await cp(join(root, "examples/01-hello/workflows"), join(dir, "workflows"), { recursive: true });
  const address = again?.address ?? `127.0.0.1:${await freePort()}`;
  const worker = spawn(binary, [
    "--workflows", join(dir, "workflows"), "--store", join(dir, "data"), "--listen", address, "--http", "off", ...flags,
  ], { stdio: ["ignore", "pipe", "pipe"], env: { ...process.env, ...env } });
  const exited = once(worker, "exit");
  const kill = async () => {
    worker.kill("SIGKILL");
    await exited;
  };
  const stop = async () => {
    await kill();
    await rm(dir, { recursive: true, force: true });
  };
  await ready(worker);
  return { url: `nats://${address}`, dir, address, kill, stop };
}

/** Starts a worker whose server has the accounts of tenant acme; the password of each user is "pw". */
export async function startSecuredWorker() {
  const { stdout } = await promisify(execFile)(join(dirname(binary), "turnctl"), ["nats-config", "--tenants", "acme"]);
  const dir = await mkdtemp(join(tmpdir(), "oneturn-js-"));
  await writeFile(join(dir, "accounts.conf"), stdout);
  const env = Object.fromEntries([...stdout.matchAll(/\$(\w+_PASSWORD)/g)].map(([, name]) => [name, "pw"]));
  const worker = await startWorker(["--accounts", join(dir, "accounts.conf")], env);
  await rm(dir, { recursive: true });
  return worker;
}

function ready(worker) {
  return new Promise((resolve, reject) => {
    let printed = "";
    const read = (piece) => {
      printed += piece;
      if (printed.includes(" is ready")) resolve();
    };
    worker.stdout.on("data", read);
    worker.stderr.on("data", read);
    worker.on("error", reject);
    worker.on("exit", (code) => reject(new Error(`the worker ended with ${code}:\n${printed}`)));
  });
}

async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  server.close();
  await once(server, "close");
  return port;
}
