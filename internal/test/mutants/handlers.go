package mutants

// handlers returns the faults of package handlers.
func handlers() []Fault {
	const storm = "chaos:duplicates-resumes-cancels"
	return []Fault{
		{
			Name: "ack_before_publish", Breaks: "acknowledges a message whose response may not be stored",
			CaughtBy: []string{Sim, "crash:^TestWorkerThatEndsBeforeItsResultsAreStoredLeavesTheMessages$"},
		},
		{Name: "dedupe_window_only", Breaks: "trusts the duplicate window of the stream: each message is a turn", CaughtBy: []string{Sim, storm}},
		{
			Name: "msgid_decides", Breaks: "treats a Nats-Msg-Id that was seen before as a duplicate",
			CaughtBy: []string{Sim, "crash:^TestToolRunsAsOftenAsItsEffectAllowsWhenSignsOfLifeAreLost$"},
		},
		{Name: "takeover_runs_binding", Breaks: "enters, in a takeover, the tool that the manifests bind today", CaughtBy: []string{Sim}},
		{Name: "merge_before_finish", Breaks: "merges context changes before it is known whether their run ends the turn", CaughtBy: []string{Sim}},
		{Name: "live_cancel_decides", Breaks: "ends a tool because of the live copy of a cancel, whether one is stored or not", CaughtBy: []string{Sim}},
		{Name: "result_is_given_up", Breaks: "drops the result of a tool when the lease is lost before it is stored", CaughtBy: []string{Sim}},
		{Name: "lost_lease_ends_wait", Breaks: "ends a run of an unsafe tool that waits for an answer when its lease is lost", CaughtBy: []string{Sim}},
		{Name: "stranger_takes_over", Breaks: "takes turns over whose workflow the worker does not know", CaughtBy: []string{Sim}},
		{Name: "budget_ignored", Breaks: "requeues messages with a delay however many places they take", CaughtBy: []string{Sim}},
		{Name: "full_store_claims", Breaks: "claims new turns while the store is nearly full", CaughtBy: []string{Sim}},
		{Name: "aside_under_later", Breaks: "acknowledges a deferred message whatever a later delivery holds", CaughtBy: []string{Sim}},
		{Name: "no_room_drops", Breaks: "acknowledges a message that waits and must not be deferred, without a record of it", CaughtBy: []string{Sim}},
		{Name: "room_ignored", Breaks: "defers messages however many are deferred already", CaughtBy: []string{Sim}},
		{Name: "worker_clock_decides", Breaks: "measures the age of a message by the clock of the worker", CaughtBy: []string{Sim}},
		{Name: "early_is_unknown", Breaks: "rejects an answer that is faster than the record of its question", CaughtBy: []string{Sim}},
		{Name: "sweep_writes_over", Breaks: "writes in a sweep over what another one has committed while it was stopped", CaughtBy: []string{Sim}},
		{Name: "sweep_forgets_unseen", Breaks: "drops an open turn whose claim one read did not show", CaughtBy: []string{Sim}},
		{Name: "count_gives_up", Breaks: "makes a dead letter of any message that was delivered some times", CaughtBy: []string{Sim}},
		{Name: "sweep_resumes_again", Breaks: "publishes another resume of a turn whose last one is not received yet", CaughtBy: []string{Sim, Sweeps}},
		{Name: "sweep_starves", Breaks: "begins every sweep at the same turns and stops where its budget is used up", CaughtBy: []string{Sweeps}},
		{
			Name: "sweep_trusts_old_pages", Breaks: "treats a parked turn as unchanged though a sweep that did not reach it has read what changed it",
			CaughtBy: []string{Sweeps},
		},
		{Name: "sweep_forgets_the_rest", Breaks: "loses the turns that a stopped sweep does not reach", CaughtBy: []string{Sweeps}},
		{
			Name: "replica_decides", Breaks: "treats a blob that a replica lacks as gone",
			CaughtBy: []string{"store:^TestBlobThatAReplicaDoesNotHaveYetIsReadFromTheLeader$"},
		},
		{
			Name: "short_read_is_whole", Breaks: "treats the headers that a replica has as all there are",
			CaughtBy: []string{"sweep:^TestHeadersAreReadToTheLastOrFailWhenAReplicaLags$"},
		},
		{
			Name: "due_has_one_id", Breaks: "gives what is due the same message id however often it is scheduled",
			CaughtBy: []string{"handlers:^TestExpiryThatCameTooSoonIsPublishedAgain$"},
		},
		{
			Name: "reply_anywhere", Breaks: "sends a reply to whatever subject its request names",
			CaughtBy: []string{"handlers:^TestVerdictGoesToInboxesOnly$"},
		},
	}
}
