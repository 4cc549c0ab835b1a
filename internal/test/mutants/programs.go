package mutants

// programs returns the faults that only turns show whose tool is a program.
func programs() []Fault {
	return []Fault{
		{
			Name: "reenter_unsafe_step", Breaks: "enters a step again that an earlier owner has called and not ended, whatever its effect",
			Edits: []Edit{{
				File: "idempotency/program.go",
				From: `again := reenterable(h.Effect)`,
				To:   `again := reenterable(h.Effect) || planted("reenter_unsafe_step")`,
			}},
			CaughtBy: []string{Sim},
		},
		{
			Name: "pipelined_response", Breaks: "sends the response of a step and continues without its acknowledgement",
			Edits: []Edit{{
				File: "idempotency/program.go",
				From: `r, own, err := j.createPublic(ctx, h, events.RecordResponse, event)`,
				To:   `if planted("pipelined_response") { return j.sendResponse(ctx, h, event), nil }; r, own, err := j.createPublic(ctx, h, events.RecordResponse, event)`,
			}},
			CaughtBy: []string{Sim},
		},
		{
			Name: "r3token", Breaks: "gives the tool of a step the sequence of its call as fencing token",
			Edits: []Edit{{
				File: "handlers/program_step.go",
				From: `call, err := p.h.toolCall(ctx, s.turn, s.run)`,
				To:   `call, err := p.h.toolCall(ctx, s.turn, s.run); if err == nil && planted("r3token") { call.FencingToken = p.turn.program.newest.Load() }`,
			}},
			CaughtBy: []string{Sim},
		},
		{
			Name: "memory_order", Breaks: "takes the call of a race as its winner whose success arrives first",
			Edits: []Edit{{
				File: "internal/program/runner.go",
				From: `if err := r.confirm(got); err != nil {`,
				To:   `if planted("memory_order") { } else if err := r.confirm(got); err != nil {`,
			}},
			// A race is over when all its calls have ended, so no schedule shows it.
			CaughtBy: []string{"program:^TestFirstSuccessThatIsStoredWinsThoughAnotherOneArrivesFirst$"},
		},
		{
			Name: "last_success_wins", Breaks: "takes the success of a race as its winner that was stored last",
			Edits: []Edit{{
				File: "flow/progress.go",
				From: `c.Seq < state[winner.ID].Seq) {`,
				To:   `(c.Seq < state[winner.ID].Seq) != planted("last_success_wins")) {`,
			}},
			CaughtBy: []string{Sim},
		},
		{
			Name: "no_close", Breaks: "ends a turn whose steps have no response",
			Edits: []Edit{{
				File: "idempotency/program.go",
				From: `t, err := j.readUntil(ctx, h.Key, max(h.Token, h.Claim), nil)`,
				To:   `if planted("no_close") { return nil, nil }; t, err := j.readUntil(ctx, h.Key, max(h.Token, h.Claim), nil)`,
			}},
			CaughtBy: []string{Sim},
		},
		{
			Name: "waiting_step_is_entered", Breaks: "enters, after a park, also the steps that still wait for people",
			Edits: []Edit{{
				File: "handlers/program_step.go",
				From: `if before != nil && p.d.Turn.Waits(before) {`,
				To:   `if before != nil && p.d.Turn.Waits(before) && !planted("waiting_step_is_entered") {`,
			}},
			CaughtBy: []string{Sim},
		},
		{
			Name: "stopped_call_waits", Breaks: "parks a turn for the questions of a call that was stopped",
			Edits: []Edit{{
				File: "internal/program/runner.go",
				From: `if !running.stopped && !isFinal(why) && r.Steps.Waits(running.call) {`,
				To:   `if (!running.stopped && !isFinal(why) || planted("stopped_call_waits")) && r.Steps.Waits(running.call) {`,
			}},
			CaughtBy: []string{Sim, "program:^TestCallThatWaitedForPeopleDoesNotWaitOnceItIsStopped$"},
		},
		{
			Name: "kept_step_runs_again", Breaks: "runs a step again, in a retry, whose end the retry keeps",
			Edits: []Edit{{
				File: "handlers/program.go",
				From: `if copied := p.copies.Call(p.prefix + call.ID); copied != nil {`,
				To:   `if copied := p.copies.Call(p.prefix + call.ID); copied != nil && !planted("kept_step_runs_again") {`,
			}},
			CaughtBy: []string{
				"handlers:^TestRetryRunsTheFailedCallAndWhatFollowsAndCopiesTheRest$",
				"crash:^TestRetriesWhoseWorkerDies$/^R3_program_with_the_kept_results_lost$",
			},
		},
		{
			Name: "empty_retry_is_retried", Breaks: "retries a retry that ran nothing, and so runs what the first turn has finished",
			Edits: []Edit{{
				File: "handlers/program_retry.go",
				From: `if err := plan.past.Check(t.ResumeOf); err != nil {`,
				To:   `if err := plan.past.Check(t.ResumeOf); err != nil && !planted("empty_retry_is_retried") {`,
			}},
			CaughtBy: []string{"handlers:^TestRetryThatRanNothingIsNotRetriedItself$"},
		},
		{
			Name: "returned_call_needs_no_consent", Breaks: "does not store, of a call that failed after its tool returned, that its effect has happened",
			Edits: []Edit{{
				File: "handlers/response.go",
				From: `r.Status, r.Success, r.Content, r.Code, r.ContextKeys, r.EffectState = out.Status`,
				To:   `if planted("returned_call_needs_no_consent") { out.EffectState = "" }; r.Status, r.Success, r.Content, r.Code, r.ContextKeys, r.EffectState = out.Status`,
			}},
			CaughtBy: []string{"handlers:^TestRetryOfACallWhoseToolHasReturnedNeedsConsent$"},
		},
		{
			Name: "unread_response", Breaks: "treats a step whose call is refused as open, whether it has ended or not",
			Edits: []Edit{{
				File: "idempotency/program.go",
				From: `response, err := j.responseOf(ctx, h, s, called)`,
				To:   `response, err := j.responseOf(ctx, h, s, called); if planted("unread_response") { response = nil }`,
			}},
			CaughtBy: []string{Sim},
		},
	}
}
