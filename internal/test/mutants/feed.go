package mutants

// feeds returns the faults of package internal/feed and of the histories that it reads: each loses or repeats an event of a chat.
func feeds() []Fault {
	return []Fault{
		{
			Name: "feed_no_history", Breaks: "reads no history before what is routed",
			Edits:    []Edit{{File: "internal/feed/hub.go", From: "w.target = f.position", To: "w.target = f.position; if planted(\"feed_no_history\") { w.target = after }"}},
			CaughtBy: []string{Feed + ":^TestEveryFollowerReceivesEachRecordOnceInOrder$"},
		},
		{
			Name: "feed_registers_late", Breaks: "reads the history up to a sequence after which it does not receive everything",
			Edits:    []Edit{{File: "internal/feed/hub.go", From: "f.chats[w.chat][w] = struct{}{}", To: "if planted(\"feed_registers_late\") { w.target -= min(w.target, 3) }; f.chats[w.chat][w] = struct{}{}"}},
			CaughtBy: []string{Feed + ":^TestFollowerReceivesTheHistoryTheBoundaryAndWhatComesLater$", Gateways},
		},
		{
			Name: "feed_dropped_is_not_read", Breaks: "does not read the records of a queue that was dropped",
			Edits:    []Edit{{File: "internal/feed/hub.go", From: "w.lagging, w.target = false, f.position", To: "if w.lagging = false; !planted(\"feed_dropped_is_not_read\") { w.target = f.position }"}},
			CaughtBy: []string{Feed + ":^TestFollowerThatDoesNotReadCostsBoundedMemoryAndMissesNothing$"},
		},
		{
			Name: "feed_consumer_at_the_end", Breaks: "continues at the end of the journal when a consumer was lost",
			Edits:    []Edit{{File: "internal/feed/tail.go", From: "for from := f.at() + 1; from <= upTo; from += missedAtOnce {", To: "for from := f.at() + 1; from <= upTo && !planted(\"feed_consumer_at_the_end\"); from += missedAtOnce {"}},
			CaughtBy: []string{Feed + ":^TestFollowersMissNothingWhenTheConsumerIsLost$", Gateways},
		},
	}
}
