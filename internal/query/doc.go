// Package query reads turns and questions from the journal, for everything that shows them: the request
// API, commands and frontends. It needs no worker.
//
//	locate.go          which turn or question a tool_call_id means: the one rule of ids
//	turn.go            the state of a turn
//	question.go        one question: its decoder, and the one rule for its state
//	records.go         decodes the events of claims, questions and responses, for handlers and sweeps
//	reader.go          [Reader]: how the journal is read, within the search budget of the tenant that asks
//	chat.go            what the newest turn or message states about its chat
//	chat_owner.go      the user that a chat belongs to
//	pages.go           pages of events of a chat
//	history.go         pages of the history of a chat in batches, for feeds
//	blocks.go          has the server load what a history lies in, without delaying writes
//	chat_names.go      the names of the records of a chat, remembered while its pages are read
//	copies.go          which copy of the journal histories are read from
//	turn_pages.go      pages of events of a turn
//	message.go         what is known of the turn of a message, for its page
//	steps.go           the steps of a program: their states, and pages of them
//	program.go         the program of a turn as a tree of its steps
//	approval.go        how the question whether a program may run was decided
//	question_pages.go  pages of open questions of a chat or a tenant
//	order.go           [Order]: the order in which the messages of a filter were written
//	oversized.go       filters that match too many records, remembered for a minute
//
// Each function of records.go checks that a record belongs under its key, and returns nothing, not a guess, when it
// does not. Searches use the index of names that the server keeps: they read no records.
package query
