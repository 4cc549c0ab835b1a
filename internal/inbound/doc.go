// Package inbound has the messages that handlers receive and how they settle them.
//
// A [Message] is one delivery from the inbound stream or from the timers, with its lease and its slot; a [Disposition]
// is what the worker does with it afterwards: acknowledge, redeliver, leave or erase (message.go). Handlers never settle a message
// themselves. headers.go selects the headers of a sender that may be stored again and reads the trace context
// and the depth.
package inbound
