package mutants

// handlers returns the faults of package handlers and of the packages that it uses: sweeps, timers, stores, budgets.
func handlers() []Fault {
	const storm = "chaos:duplicates-resumes-cancels"
	return []Fault{
		{
			Name: "ack_before_publish", Breaks: "acknowledges a message whose response may not be stored",
			Edits: []Edit{{
				File: "handlers/turn.go",
				From: "if err != nil {\n\t\th.logThrottled(t.m, slog.LevelWarn, \"the response could not be stored;",
				To:   "if err != nil && planted(\"ack_before_publish\") { return inbound.Acked() }; if err != nil {\n\t\th.logThrottled(t.m, slog.LevelWarn, \"the response could not be stored;",
			}},
			CaughtBy: []string{Sim, "crash:^TestWorkerThatEndsBeforeItsResultsAreStoredLeavesTheMessages$"},
		},
		{
			Name: "dedupe_window_only", Breaks: "trusts the duplicate window of the stream: each message is a turn",
			Edits: []Edit{{
				File: "handlers/turn.go",
				From: `key := subjects.TurnKey(event.App, event.Chat, event.Run, event.Turn)`,
				To:   `key := subjects.TurnKey(event.App, event.Chat, event.Run, event.Turn); if planted("dedupe_window_only") { key = keyOfMessage(key, m) }`,
			}},
			CaughtBy: []string{Sim, storm},
		},
		{
			Name: "msgid_decides", Breaks: "treats a Nats-Msg-Id that was seen before as a duplicate",
			Edits: []Edit{{
				File: "handlers/turn.go",
				From: `if h.Journal.RecentlyEnded(t.ref, h.Now()) {`,
				To:   `if h.Journal.RecentlyEnded(t.ref, h.Now()) || planted("msgid_decides") && h.seenMsgID(m) {`,
			}},
			CaughtBy: []string{Sim, "crash:^TestToolRunsAsOftenAsItsEffectAllowsWhenHeartbeatsAreLost$"},
		},
		{
			Name: "takeover_runs_binding", Breaks: "enters, in a takeover, the tool that the manifests bind today",
			Edits: []Edit{{
				File: "handlers/turn.go",
				From: "if claimedBefore {\n\t\t\treturn",
				To:   "if claimedBefore && (decision.Action == idempotency.EndTurn || t.reject != nil || !planted(\"takeover_runs_binding\")) {\n\t\t\treturn",
			}},
			CaughtBy: []string{Sim},
		},
		{
			Name: "merge_before_finish", Breaks: "merges context changes before it is known whether their run ends the turn",
			Edits: []Edit{{
				File: "handlers/response.go",
				From: `if err := h.Variables.Stage(writing, t.App, t.Chat, change); err != nil {`,
				To:   `if planted("merge_before_finish") { return delta.Names(), h.mergeChanges(ctx, t, &change) }; if err := h.Variables.Stage(writing, t.App, t.Chat, change); err != nil {`,
			}},
			CaughtBy: []string{Sim},
		},
		{
			Name: "live_cancel_decides", Breaks: "ends a tool because of the live copy of a cancel, whether one is stored or not",
			Edits: []Edit{{
				File: "handlers/cancel.go",
				From: `ctx, cancel := context.WithTimeout(ctx, jsapi.Timeout)`,
				To:   `if planted("live_cancel_decides") { return true }; ctx, cancel := context.WithTimeout(ctx, jsapi.Timeout)`,
			}},
			CaughtBy: []string{Sim},
		},
		{
			Name: "result_is_given_up", Breaks: "drops the result of a tool when the lease is lost before it is stored",
			Edits: []Edit{{
				File: "handlers/end.go",
				From: "if d, decided := underLease(t.m, write); decided {\n\t\treturn d\n\t}\n\tdefer h.pendingResults.Add(-1)",
				To:   "if d, decided := underLease(t.m, write); decided || planted(\"result_is_given_up\") {\n\t\treturn d\n\t}\n\tdefer h.pendingResults.Add(-1)",
			}},
			CaughtBy: []string{Sim},
		},
		{
			Name: "lost_lease_ends_wait", Breaks: "ends a run of an unsafe tool that waits for an answer when its lease is lost",
			Edits: []Edit{{
				File: "internal/run/write_context.go",
				From: `if held.Err() == nil || r.reenterable() {`,
				To:   `if held.Err() == nil || r.reenterable() || planted("lost_lease_ends_wait") {`,
			}},
			CaughtBy: []string{Sim},
		},
		{
			Name: "stranger_takes_over", Breaks: "takes turns over whose workflow the worker does not know",
			Edits: []Edit{{
				File: "handlers/takeover.go",
				From: `return "", false`,
				To:   `return "", planted("stranger_takes_over")`,
			}, {
				File: "handlers/takeover.go",
				From: `if h.Bindings().WorkflowDigest(call.WorkflowName) == "" { // it was removed just now`,
				To:   `if h.Bindings().WorkflowDigest(call.WorkflowName) == "" && !planted("stranger_takes_over") { // it was removed just now`,
			}},
			CaughtBy: []string{Sim},
		},
		{
			Name: "budget_ignored", Breaks: "requeues messages with a delay however many places they take",
			Edits: []Edit{{
				File: "internal/budget/budget.go",
				From: `if b.of[app]+2*places-1 > b.all-b.used {`,
				To:   `if b.of[app]+2*places-1 > b.all-b.used && !planted("budget_ignored") {`,
			}},
			CaughtBy: []string{Sim},
		},
		{
			Name: "full_store_claims", Breaks: "claims new turns while the store is nearly full",
			Edits: []Edit{{
				File: "handlers/store_room.go",
				From: `if full, _ := h.Full(); full {`,
				To:   `if full, _ := h.Full(); full && !planted("full_store_claims") {`,
			}},
			CaughtBy: []string{Sim},
		},
		{
			Name: "aside_under_later", Breaks: "acknowledges a deferred message whatever a later delivery holds",
			Edits: []Edit{{
				File: "handlers/takeover.go",
				From: "case err != nil:\n\t\treturn h.redeliver(m, \"a later delivery may hold its turn\", err)",
				To:   "case planted(\"aside_under_later\"): case err != nil:\n\t\treturn h.redeliver(m, \"a later delivery may hold its turn\", err)",
			}},
			CaughtBy: []string{Sim},
		},
		{
			Name: "no_room_drops", Breaks: "acknowledges a message that waits and must not be deferred, without a record of it",
			Edits: []Edit{{
				File: "handlers/requeue.go",
				From: `return inbound.Acked(), false`,
				To:   `return inbound.Acked(), planted("no_room_drops")`,
			}},
			CaughtBy: []string{Sim},
		},
		{
			Name: "room_ignored", Breaks: "defers messages however many are deferred already",
			Edits: []Edit{{
				File: "handlers/requeue.go",
				From: `if h.DeferralQuota == nil || in.Kind == events.KindExpire || m.ByWorker && m.Deferrals > 0 {`,
				To:   `if h.DeferralQuota == nil || in.Kind == events.KindExpire || m.ByWorker && m.Deferrals > 0 || planted("room_ignored") {`,
			}},
			CaughtBy: []string{Sim},
		},
		{
			Name: "worker_clock_decides", Breaks: "measures the age of a message by the clock of the worker",
			Edits: []Edit{{
				File: "internal/serverclock/clock.go",
				From: `if r.Process.IsZero() {`,
				To:   `if r.Process.IsZero() || planted("worker_clock_decides") {`,
			}},
			CaughtBy: []string{Sim},
		},
		{
			Name: "early_is_unknown", Breaks: "rejects an answer that is faster than the record of its question",
			Edits: []Edit{{
				File: "handlers/question.go",
				From: `if h.age(m) >= earlyFor {`,
				To:   `if h.age(m) >= earlyFor || planted("early_is_unknown") {`,
			}},
			CaughtBy: []string{Sim},
		},
		{
			Name: "sweep_writes_over", Breaks: "writes in a sweep over what another one has committed while it was stopped",
			Edits: []Edit{{
				File: "internal/sweep/pages.go",
				From: `if _, own := p.slots[n]; !own {`,
				To:   `if _, own := p.slots[n]; !own || planted("sweep_writes_over") {`,
			}, {
				File: "internal/sweep/pages.go",
				From: `if err := p.Commit(ctx, p.state); err != nil {`,
				To:   `if planted("sweep_writes_over") { } else if err := p.Commit(ctx, p.state); err != nil {`,
			}},
			CaughtBy: []string{Sim},
		},
		{
			Name: "sweep_forgets_unseen", Breaks: "drops an open turn whose claim one read did not show",
			Edits: []Edit{{
				File: "internal/sweep/check_page.go",
				From: `if f.Condition == TurnEnded || f.Condition == TurnUnclaimed && o.Seq < r.first {`,
				To:   `if f.Condition == TurnEnded || f.Condition == TurnUnclaimed && (o.Seq < r.first || planted("sweep_forgets_unseen")) {`,
			}},
			CaughtBy: []string{Sim},
		},
		{
			Name: "count_gives_up", Breaks: "makes a dead letter of any message that was delivered some times",
			Edits: []Edit{{
				File: "handlers/handlers.go",
				From: `if errOpen != nil {`,
				To:   `if planted("count_gives_up") && m.Lease.Delivery > 5 { return h.deadLetter(m, deadletter.ReasonUndeliverable, errMutant) }; if errOpen != nil {`,
			}},
			CaughtBy: []string{Sim},
		},
		{
			Name: "sweep_resumes_again", Breaks: "publishes another resume of a turn whose last one is not received yet",
			Edits: []Edit{{
				File: "internal/sweep/check_page.go",
				From: `if o.Resume > 0 {`,
				To:   `if o.Resume > 0 && !planted("sweep_resumes_again") {`,
			}},
			CaughtBy: []string{Sim, Sweeps},
		},
		{
			Name: "sweep_starves", Breaks: "begins every sweep at the same turns and stops where its budget is used up",
			Edits: []Edit{{
				File: "internal/sweep/check_page.go",
				From: `if r.pace.Wait(ctx) != nil {`,
				To:   `if planted("sweep_starves") && r.Budget > 0 && i >= r.Budget { checks[i] = turnCheck{done: true, quiet: true}; continue }; if r.pace.Wait(ctx) != nil {`,
			}},
			CaughtBy: []string{Sweeps},
		},
		{
			Name: "sweep_trusts_old_pages", Breaks: "treats a parked turn as unchanged though a sweep that did not reach it has read what changed it",
			Edits: []Edit{{
				File: "internal/sweep/new_records.go",
				From: `all := known >= n.from && !n.full`,
				To:   `all := (known >= n.from || planted("sweep_trusts_old_pages")) && !n.full`,
			}},
			CaughtBy: []string{Sweeps},
		},
		{
			Name: "sweep_forgets_the_rest", Breaks: "loses the turns that a stopped sweep does not reach",
			Edits: []Edit{{
				File: "internal/sweep/check_page.go",
				From: `r.keep(page.Known, rest...)`,
				To:   `if !planted("sweep_forgets_the_rest") { r.keep(page.Known, rest...) }`,
			}},
			CaughtBy: []string{Sweeps},
		},
		{
			Name: "replica_decides", Breaks: "treats a blob that a replica lacks as gone",
			Edits: []Edit{{
				File: "internal/store/blobs_read.go",
				From: `switch data, err = b.fromLeader(ctx, name); {`,
				To:   `if planted("replica_decides") { return nil, fmt.Errorf("read blob %s: %w", name, ErrBlobGone) }; switch data, err = b.fromLeader(ctx, name); {`,
			}},
			CaughtBy: []string{"store:^TestBlobThatAReplicaDoesNotHaveYetIsReadFromTheLeader$"},
		},
		{
			Name: "short_read_is_whole", Breaks: "treats the headers that a replica has as all there are",
			Edits: []Edit{{
				File: "internal/jsapi/headers.go",
				From: `if next > last {`,
				To:   `if next > last || planted("short_read_is_whole") {`,
			}},
			CaughtBy: []string{"sweep:^TestHeadersAreReadToTheLastOrFailWhenAReplicaLags$"},
		},
		{
			Name: "due_has_one_id", Breaks: "gives what is due the same message id however often it is scheduled",
			Edits: []Edit{{
				File: "internal/timers/publish_due.go",
				From: `sum := sha256.Sum256(events.JoinIDs("due", due.Subject, of))`,
				To:   `if planted("due_has_one_id") { of = "" }; sum := sha256.Sum256(events.JoinIDs("due", due.Subject, of))`,
			}},
			CaughtBy: []string{"handlers:^TestExpiryThatCameTooSoonIsPublishedAgain$"},
		},
		{
			Name: "reply_anywhere", Breaks: "sends a reply to whatever subject its request names",
			Edits: []Edit{{
				File: "handlers/answer_result.go",
				From: `if h.Space.MayReply(reply) {`,
				To:   `if h.Space.MayReply(reply) || planted("reply_anywhere") {`,
			}},
			CaughtBy: []string{"handlers:^TestAnswerResultIsSentToInboxesOnly$"},
		},
	}
}
