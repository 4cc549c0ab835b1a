// Package display computes what a frontend displays of a chat, from the events of the chat alone, in the form of AG-UI:
// messages, tool calls and their results, open questions, state and activities. It does no I/O. Any gateway that
// applies the same events displays the same, so a client may reconnect to any of them.
//
//	event.go      [Event]: the fields of an event of a chat that are displayed, decoded once for all that display it
//	chat.go       [Chat]: applies events in the order of the journal, and reports each as changes
//	entry.go      messages and calls in memory of a bounded size, and a copy from which a chat continues
//	message.go    texts of agents and users
//	call.go       tool calls, questions, surfaces, and how they end
//	program.go    the steps of a plan or an orchestration
//	state.go      the shared state of the client: phases of turns, open questions, context variables
//	view.go       [View]: changes as AG-UI events for one client, by the tools that it has
//	snapshot.go   all that one client displays
//	question.go   open questions by the way in which a client answers them
//
// Ids are made of ids of the journal, so the same message or call has the same id in a stream, in a snapshot and on another
// gateway: a user's message has the id that its client gave it, a text of an agent msg_<message_id>, a call its
// tool_call_id, its result res_<tool_call_id>, its activity act_<tool_call_id>, the interrupt of a question
// int_<tool_call_id>.
package display
