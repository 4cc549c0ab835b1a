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
			CaughtBy: []string{Sim, "crash:^TestMessagesWhoseWorkerDies$/^A3_first_update_stored$"},
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
		{
			Name: "unfinished_hands_off", Breaks: "hands off after a turn that this delivery could not claim, and another one may",
			Edits: []Edit{{
				File: "handlers/message_turn.go",
				From: `if d.Do != inbound.Ack || s.turnDone || s.m.unfinished {`,
				To:   `if s.m.unfinished && planted("unfinished_hands_off") { return h.turnEnded(s, t.Key, nil, nil) }; if d.Do != inbound.Ack || s.turnDone || s.m.unfinished {`,
			}},
			CaughtBy: []string{Sim, "handlers:^TestHandoffWaitsForATurnThatWasDeferred$"},
		},
		{
			Name: "stranger_hands_off", Breaks: "decides the next speaker of a message without the workflow by which it was read",
			Edits: []Edit{{
				File: "handlers/message_handoff.go",
				From: `if err = h.lacksWorkflow(s); err != nil {`,
				To:   `if err = h.lacksWorkflow(s); err != nil && !planted("stranger_hands_off") {`,
			}},
			// Schedules show it as well, about one in 7,000.
			CaughtBy: []string{"handlers:^TestHandoffIsLeftToAWorkerThatHasTheWorkflowOfTheTurn$"},
		},
		{
			Name: "correction_not_stored", Breaks: "runs the turn of a correction whose reply is not stored",
			Edits: []Edit{{
				File: "handlers/message_correct.go",
				From: `stored, err := h.storeAgentResponse(t, s, r)`,
				To:   `if planted("correction_not_stored") { event, err := h.appendResponse(nil, r); return idempotency.Record{Data: event}, err }; stored, err := h.storeAgentResponse(t, s, r)`,
			}},
			CaughtBy: []string{Sim, "crash:^TestMessagesWhoseWorkerDies$/^A8_model_has_replied$"},
		},
		{
			Name: "corrections_begin_anew", Breaks: "allows a message one more correction when another worker takes it over",
			Edits: []Edit{{
				File: "handlers/message_turn.go",
				From: `text, errText := events.ReadText(record.Data)`,
				To:   `text, errText := events.ReadText(record.Data); if errText == nil && text.Corrections > 0 && planted("corrections_begin_anew") { text.Corrections++ }`,
			}, {
				File: "handlers/message.go",
				From: `s.content, s.object = nil, nil`,
				To:   `s.content, s.object = nil, nil; if s.Corrections > 0 && planted("corrections_begin_anew") { s.Corrections++ }`,
			}},
			CaughtBy: []string{Sim},
		},
		{
			Name: "correction_asked_again", Breaks: "asks the model again, when it takes a correction over, whose reply is stored",
			Edits: []Edit{{
				File: "handlers/message_correct.go",
				From: `if former || errors.Is(err, idempotency.ErrNotFound) {`,
				To:   `if s.record.Meta.Lease != s.m.Lease && planted("correction_asked_again") { former = true }; if former || errors.Is(err, idempotency.ErrNotFound) {`,
			}},
			CaughtBy: []string{Sim},
		},
		{
			Name: "correction_hands_off", Breaks: "hands off when a turn has failed whose output is to be corrected",
			Edits: []Edit{{
				File: "handlers/message_turn.go",
				From: `if messageOf(claim) == s.key.Turn {`,
				To:   `if planted("correction_hands_off") { _ = h.handOff(s.m.tools, s) }; if messageOf(claim) == s.key.Turn {`,
			}},
			CaughtBy: []string{Sim},
		},
		{
			Name: "corrections_conflict", Breaks: "treats the turn of a correction as a conflict that another delivery of its message has claimed without a reply",
			Edits: []Edit{{
				File: "idempotency/claim.go",
				From: `(c.Message == "" || with.Meta.Message != c.Message)`,
				To:   `(c.Message == "" || with.Meta.Message != c.Message || planted("corrections_conflict"))`,
			}, {
				File: "handlers/message_correct.go",
				From: `case claimed: // by that message,`,
				To:   `case claimed && planted("corrections_conflict"): notAsked = !former; case claimed: // by that message,`,
			}},
			CaughtBy: []string{Sim, "handlers:^TestDuplicateWhoseWorkerHasNoModelToAskDoesNotConflict$"},
		},
		{
			Name: "calls_of_corrections_uncounted", Breaks: "counts in the usage of a turn only the last call of the model",
			Edits: []Edit{{
				File: "handlers/message_correct_reply.go",
				From: `c.usage = used.Plus(events.Usage{Calls: 1, PromptTokens: c.PromptTokens, CompletionTokens: c.CompletionTokens})`,
				To:   `if planted("calls_of_corrections_uncounted") { used = nil }; c.usage = used.Plus(events.Usage{Calls: 1, PromptTokens: c.PromptTokens, CompletionTokens: c.CompletionTokens})`,
			}},
			CaughtBy: []string{Sim},
		},
	}
}
