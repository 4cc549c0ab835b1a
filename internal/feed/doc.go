// Package feed delivers the events of chats: the stored ones from the journal, then live ones, for everything that shows a chat to
// people. It needs no worker.
//
//	event.go     [Event], [Boundary], [Item]: what a follower receives
//	feeds.go     [Feeds]: one subscription of a process to the events of all chats
//	tail.go      the consumer at the end of the journal, and what ends it
//	catch_up.go  waits until everything that is stored is routed
//	outage.go    how often the loss of that consumer is logged, and how soon another one is tried
//	hub.go       routes events to the followers of their chats
//	follower.go  [Follower]: the events of one chat, in order and once
//	history.go   reads pages of the journal
//	pages.go     followers that need the same page share its read
//	places.go    how many pages are read at the same time, for all tenants, for one and for one user
//
// A follower registers when every record up to a sequence T was routed. It reads the records up to T from the journal and receives
// those after T from the hub, so none is missing and none comes twice. What it has not taken yet waits in a queue of bounded size. A
// queue that is full is dropped, and its follower reads the journal again from the last sequence that it delivered. So a slow reader
// costs bounded memory and delays no other.
package feed
