// What a frontend shows of an event. Pure functions: an event is the envelope, or its data alone.

/**
 * Returns the payload for the component of a tool_call: the arguments of an automatic call are moved up into the payload,
 * and so are the fields of the argument that has the component's name, if that is an object. Later ones win: payload,
 * fields of that object, other arguments. The event is not changed.
 */
export function componentPayload(event) {
  const { component_type: component, payload } = dataOf(event);
  if (!isObject(payload)) return payload;
  const { tool_args: args, ...rest } = payload;
  if (payload.interaction_type !== "auto_tool" || !isObject(args) || typeof args.$blob === "string") return { ...payload };
  if (typeof component !== "string" || !Object.hasOwn(args, component) || !isObject(args[component])) return { ...rest, ...args };
  const { [component]: model, ...others } = args;
  return { ...rest, ...model, ...others };
}

/** Reports whether a chat shows an event: not what is hidden, and not that an automatic call succeeded. */
export function isShown(event) {
  const data = dataOf(event);
  if (data.ui_hidden === true) return false;
  return !(kindOf(data) === "tool_response" && data.interaction_type === "auto_tool" && data.success === true);
}

function dataOf(event) {
  return isObject(event.data) && event.kind === undefined ? event.data : event;
}

function kindOf(data) {
  const kind = String(data.kind);
  return kind.startsWith("chat.") ? kind.slice("chat.".length) : kind;
}

function isObject(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
