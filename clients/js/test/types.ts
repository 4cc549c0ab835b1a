// Compiled, never run: the types fit how the module is used.

import { connect } from "@nats-io/transport-node";
import { Client, ConflictError, componentPayload, isShown, type Message, type Turn } from "@oneturn/client";
import { isShown as alone } from "@oneturn/client/frontend";

const turn: Turn = { chat: "c", turn: "t", workflow: "W", agent: "A", model: "M", data: { a: [1, null] } };
const message: Message = { chat: "c", id: "m", workflow: "W", agent: "A", content: "NEXT", finishReason: "stop" };

export async function use(): Promise<string> {
  const client = new Client(await connect({ servers: "nats://127.0.0.1:4222" }), { app: "acme" });
  const { sequence, duplicate } = await client.publishTurn(turn);
  await client.publishMessage(message);
  await client.publishUserMessage({ chat: "c", id: "m", workflow: "W", userId: "u", content: "hello" });
  const { text, response, output, updates, handoff } = await client.awaitMessage(message, { timeout: 1_000 });
  console.log(text.ui_hidden, response?.content, output?.payload, updates[0]?.value, handoff?.to);
  await client.awaitMessage({ chat: "c", id: "m" });
  try {
    const response = await client.runTurn(turn, {
      timeout: 1_000,
      onQuestion: async ({ tool_call_id, answer }) => {
        const verdict = await client.answer({ chat: "c", toolCallId: tool_call_id, value: true, subject: answer.subject, workflow: "W" });
        console.log(verdict.code, verdict.errors?.[0]?.path);
      },
    });
    await client.cancel({ chat: "c", workflow: "W", toolCallId: response.tool_call_id });
  } catch (error) {
    if (error instanceof ConflictError) return error.message;
  }
  for await (const { event } of client.history({ chat: "c" })) {
    if (event && isShown(event) && alone(event.data)) console.log(componentPayload(event));
  }
  // @ts-expect-error a turn has a chat
  await client.publishTurn({ turn: "t", workflow: "W", data: {} });
  return `${sequence} ${duplicate}`;
}
