// What a frontend shows: the cases that both clients share.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { componentPayload, isShown } from "../frontend.js";

const lines = readFileSync(new URL("../../testdata/frontend.jsonl", import.meta.url), "utf8").trim().split("\n");

for (const { name, kind, event, expect } of lines.map((line) => JSON.parse(line))) {
  test(name, () => {
    const before = structuredClone(event);
    const wrapped = { type: `chat.${event.kind}`, data: event, timestamp: "2026-11-28T00:15:22.749Z" };
    for (const given of [event, wrapped, { ...event, kind: `chat.${event.kind}` }]) {
      if (kind === "flatten") assert.deepEqual(componentPayload(given), expect.payload);
      else assert.deepEqual({ shown: isShown(given), text: event.content }, { shown: expect.shown, text: expect.text ?? event.content });
    }
    assert.deepEqual(event, before);
  });
}

test("arguments that are stored elsewhere stay where they are", () => {
  const payload = { interaction_type: "auto_tool", tool_args: { $blob: "b", sha256: "00", size: 300_000 } };
  assert.deepEqual(componentPayload({ kind: "tool_call", component_type: "ActionPlan", payload }), payload);
});

test("names of object members are data", () => {
  const args = JSON.parse('{"__proto__": {"a": 1}, "b": 2}');
  const flat = componentPayload({ kind: "tool_call", component_type: "constructor", payload: { interaction_type: "auto_tool", tool_args: args } });
  assert.equal(JSON.stringify(flat), '{"interaction_type":"auto_tool","__proto__":{"a":1},"b":2}');
  assert.equal(flat.a, undefined);
});
