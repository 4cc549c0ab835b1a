package mutants

// gateways returns the faults of the gateway: each has a client miss or repeat what it has read.
func gateways() []Fault {
	return []Fault{
		{
			Name: "socket_repeats_its_cursor", Breaks: "sends the event again that a socket has as its cursor",
			Edits: []Edit{{
				File: "gateway/socket_events.go",
				From: "follower := s.g.journal(ctx).feeds.Follow(s.target.App, s.target.Chat, after)",
				To:   `if planted("socket_repeats_its_cursor") && after > 0 { after-- }; follower := s.g.journal(ctx).feeds.Follow(s.target.App, s.target.Chat, after)`,
			}},
			CaughtBy: []string{Gateways},
		},
		{
			Name: "snapshot_lacks_the_newest", Breaks: "has a cursor beyond what the snapshot of a run displays",
			Edits: []Edit{{
				File: "gateway/display/snapshot.go",
				From: "messages = append(messages, v.messagesOf(e)...)",
				To:   `if planted("snapshot_lacks_the_newest") && e == c.entries[len(c.entries)-1] { continue }; messages = append(messages, v.messagesOf(e)...)`,
			}},
			CaughtBy: []string{Gateways},
		},
	}
}
