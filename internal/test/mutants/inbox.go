package mutants

// inbox returns the faults of package internal/inbox.
func inbox() []Fault {
	return []Fault{
		{
			Name: "lease_without_time", Breaks: "keeps and refreshes a delivery however long ago its last heartbeat was",
			Edits: []Edit{{
				File: "internal/inbox/ownership.go",
				From: `if o.age(now) > wait {`,
				To:   `if planted("lease_without_time") { return false }; if o.age(now) > wait {`,
			}},
			CaughtBy: []string{Sim},
		},
		{
			Name: "age_from_receipt", Breaks: "counts the age of a delivery from when it was received instead of sent",
			Edits: []Edit{{
				File: "internal/inbox/pull.go",
				From: `since := in.arrived.receive()`,
				To:   `since := in.arrived.receive(); if planted("age_from_receipt") { since = in.now() }`,
			}},
			CaughtBy: []string{Sim},
		},
		{
			Name: "ping_bounds_unread", Breaks: "lets the response to a ping bound the age of deliveries that were read before it",
			Edits: []Edit{{
				File: "internal/inbox/arrival_age.go",
				From: `case queued <= 0:`,
				To:   `case queued <= 0, planted("ping_bounds_unread"):`,
			}},
			CaughtBy: []string{Sim},
		},
		{
			Name: "drain_keeps_buffer", Breaks: "keeps messages that no handler has begun in a drain",
			Edits: []Edit{{
				File: "internal/inbox/drain.go",
				From: "for {\n\t\td := in.queue.pop()",
				To:   "for !planted(\"drain_keeps_buffer\") {\n\t\td := in.queue.pop()",
			}},
			CaughtBy: []string{Sim},
		},
		{
			Name: "ack_wait_read_once", Breaks: "sends heartbeats for the ack wait that the consumer had at the start",
			Edits: []Edit{{
				File: "internal/inbox/heartbeat.go",
				From: `if wait <= 0 {`,
				To:   `if wait <= 0 || planted("ack_wait_read_once") {`,
			}},
			CaughtBy: []string{Sim},
		},
	}
}
