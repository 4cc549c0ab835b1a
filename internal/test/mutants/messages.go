package mutants

// messages returns the faults that only messages of agents and users show.
func messages() []Fault {
	return []Fault{
		{
			Name: "trigger_applied_twice", Breaks: "applies what a message changes again when it is delivered again",
			Edits: []Edit{{
				File: "internal/variables/messages.go",
				From: `if !known {`,
				To:   `if !known || planted("trigger_applied_twice") {`,
			}},
			CaughtBy: []string{Sim},
		},
		{
			Name: "handoff_on_plain_read", Breaks: "decides the next speaker by variables that were read before the compare-and-set",
			Edits: []Edit{{
				File: "handlers/message_handoff.go",
				From: `answers := map[string]handoff.Answer{}`,
				To:   `answers := map[string]handoff.Answer{}; var read map[string]any; if planted("handoff_on_plain_read") { read, _ = h.Variables.Load(ctx, s.AppID, s.ChatID, variables.Layers{Start: h.Bindings().StartValues(s.WorkflowName, s.chat())}) }`,
			}, {
				File: "handlers/message_handoff.go",
				From: `decided, question = decide(rules, s, c, answers)`,
				To:   `if planted("handoff_on_plain_read") { c.Values = read }; decided, question = decide(rules, s, c, answers)`,
			}},
			CaughtBy: []string{Sim},
		},
		{
			Name: "text_read_again", Breaks: "continues a stored message by what the manifests of today read in it",
			Edits: []Edit{{
				File: "handlers/message.go",
				From: `case s.record.Time.IsZero():`,
				To:   `case s.record.Time.IsZero() || s.record.Meta.Fingerprint == fingerprint && planted("text_read_again"):`,
			}, {
				File: "handlers/message.go",
				From: `if m.deliveries() > 1 {`,
				To:   `if m.deliveries() > 1 && !planted("text_read_again") {`,
			}},
			CaughtBy: []string{Sim},
		},
		{
			Name: "update_skipped", Breaks: "treats the changes that an earlier delivery has decided as reported",
			Edits: []Edit{{
				File: "handlers/message_follow.go",
				From: `for _, u := range applied.Updates {`,
				To:   `if s.record.Meta.Lease != s.m.Lease && planted("update_skipped") { applied.Updates = nil }; for _, u := range applied.Updates {`,
			}},
			CaughtBy: []string{Sim},
		},
		{
			Name: "message_acked_early", Breaks: "acknowledges a message whose handoff may not be stored",
			Edits: []Edit{{
				File: "handlers/message_follow.go",
				From: `if err := h.handOff(ctx, s); err != nil {`,
				To:   `if err := h.handOff(ctx, s); err != nil && !planted("message_acked_early") {`,
			}},
			CaughtBy: []string{Sim},
		},
		{
			Name: "handoff_before_turn", Breaks: "hands off before the turn of a message has its response",
			Edits: []Edit{{
				File: "handlers/message_follow.go",
				From: `if s.Turn != "" {`,
				To:   `if planted("handoff_before_turn") { _ = h.handOff(ctx, s) }; if s.Turn != "" {`,
			}},
			CaughtBy: []string{Sim},
		},
		{
			Name: "parked_turn_hands_off", Breaks: "hands off after a turn that is parked, when its message is delivered again",
			Edits: []Edit{{
				File: "handlers/takeover.go",
				From: `if end == nil {`,
				To:   `if end == nil && planted("parked_turn_hands_off") { return h.complete(t.m, t, t.Key, t.claimed, func() *events.ToolResponse { return nil }) }; if end == nil {`,
			}},
			CaughtBy: []string{Sim, "handlers:^TestMessageOfAParkedTurnThatComesAgainDoesNotHandOff$"},
		},
	}
}
