/** An event as it is on the wire, or its data alone. */
export type Event = { type?: string; data?: Record<string, unknown>; [field: string]: unknown };

/** Returns the payload for the component of a tool_call, with the arguments of an automatic call moved up into it. */
export function componentPayload(event: Event): unknown;

/** Reports whether a chat shows an event: not what is hidden, and not that an automatic call succeeded. */
export function isShown(event: Event): boolean;
