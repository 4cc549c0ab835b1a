package mutants

// journal returns the faults of package idempotency: each breaks a rule of docs/journal.md.
func journal() []Fault {
	const storm = "chaos:duplicates-resumes-cancels"
	return []Fault{
		// These four are in shared edits and in the added idempotency/mutants.go.
		{Name: "no_intent", Breaks: "enters the tool before the claim is confirmed", CaughtBy: []string{Sim, storm}},
		{Name: "mark_after_run", Breaks: "writes the claim after the tool", CaughtBy: []string{Sim, storm}},
		{Name: "read_decides", Breaks: "treats a turn as free because a read shows no claim", CaughtBy: []string{Sim, storm}},
		{Name: "reject_other_key", Breaks: "stores rejections where they do not compete with claims", CaughtBy: []string{Sim, storm}},
		{
			Name: "unfenced_terminal", Breaks: "stores a second response next to the first",
			CaughtBy: []string{Sim, "chaos:pause-in-tool-past-its-lease"},
		},
		{
			Name: "unknown_is_success", Breaks: "treats a write without an acknowledgement as stored",
			Edits: []Edit{{
				File: "idempotency/journal.go",
				From: "default:\n\t\t\tj.unknown()",
				To:   "case planted(\"unknown_is_success\"): return 0, false, nil, nil; default:\n\t\t\tj.unknown()",
			}},
			CaughtBy: []string{Sim, "crash:^TestDroppedAcknowledgementsAndRequestsOfEveryWrite$/^claim$/^drop_req$"},
		},
		{
			Name: "no_takeover", Breaks: "never takes over a turn that another message has claimed",
			Edits: []Edit{{
				File: "idempotency/claim.go",
				From: `case !t.Lease.Same(c.Lease) && !c.Signal:`,
				To:   `case !t.Lease.Same(c.Lease) && !c.Signal, planted("no_takeover"):`,
			}},
			CaughtBy: []string{Sim, "crash:^TestMatrixKillAtEveryPointOfThePathKeepsThePromise$/^after_claim$"},
		},
		{
			Name: "stale_delivery_takes_over", Breaks: "lets an older delivery of a message take the turn from a newer one",
			Edits: []Edit{{
				File: "idempotency/claim.go",
				From: `case t.Lease.Delivery >= c.Lease.Delivery:`,
				To:   `case t.Lease.Delivery >= c.Lease.Delivery && !planted("stale_delivery_takes_over"):`,
			}},
			CaughtBy: []string{Sim}, // a delivery ages while its worker hears nothing of the server
		},
		{
			Name: "takeover_ignores_effect", Breaks: "enters every tool again",
			Edits: []Edit{{
				File: "idempotency/takeover.go",
				From: `return events.Effect(effect).Reenterable()`,
				To:   `return events.Effect(effect).Reenterable() || planted("takeover_ignores_effect")`,
			}},
			CaughtBy: []string{Sim, "crash:^TestMatrixKillAtEveryPointOfThePathKeepsThePromise$/^in_tool$"},
		},
		{
			Name: "takeover_without_seal", Breaks: "takes a turn over whose owner may still park it",
			Edits: []Edit{{
				File: "idempotency/takeover.go",
				From: `park, err := j.endEpoch(ctx, hold, ParkSealed)`,
				To:   `if planted("takeover_without_seal") { return j.beginEpoch(ctx, c, hold, t) }; park, err := j.endEpoch(ctx, hold, ParkSealed)`,
			}},
			CaughtBy: []string{Sim, "crash:^TestOwnerThatHasLostItsTurnDoesNotParkIt$"},
		},
		{
			Name: "wake_without_reread", Breaks: "decides how a turn continues by a read from before its takeover",
			Edits: []Edit{{
				File: "idempotency/takeover.go",
				From: `t, err = j.readSince(ctx, c.Key, hold.Token, before)`,
				To:   `if !planted("wake_without_reread") { t, err = j.readSince(ctx, c.Key, hold.Token, before) }`,
			}},
			CaughtBy: []string{Sim, "crash:^TestTurnThatEndsWhileItIsTakenOverIsNotRunAgain$"},
		},
		{
			Name: "stale_read_believed", Breaks: "decides how a turn continues by a read that lacks its own takeover",
			Edits: []Edit{{
				File: "idempotency/read.go",
				From: `if err != nil || t.holds(seq) {`,
				To:   `if err != nil || t.holds(seq) || planted("stale_read_believed") {`,
			}},
			CaughtBy: []string{"idempotency:^TestTakeoverIsDecidedByAReadThatHasTheTakeover$"}, // one schedule in ten thousand shows it
		},
		{
			Name: "resume_takes_held", Breaks: "lets a resume take a turn whose message is still in the stream",
			Edits: []Edit{{
				File: "idempotency/resume.go",
				From: `return !held, err`,
				To:   `return !held || planted("resume_takes_held"), err`,
			}},
			CaughtBy: []string{Sim, storm},
		},
		{
			Name: "earlier_generation_counts", Breaks: "counts records of an earlier turn of the key for the turn that has claimed it since",
			Edits: []Edit{
				{
					File: "idempotency/reused_key.go",
					From: `return r.Seq < claim && r.Err == nil`,
					To:   `return r.Seq < claim && r.Err == nil && !planted("earlier_generation_counts")`,
				},
				{
					File: "idempotency/cancel.go",
					From: `case generation == 0, cancel.Err != nil:`,
					To:   `case generation == 0, cancel.Err != nil, planted("earlier_generation_counts"):`,
				},
			},
			CaughtBy: []string{Sim},
		},
		{
			Name: "cancel_reaches_next_generation", Breaks: "counts a cancel that names the claim of an earlier turn of the key for the turn that has claimed it since",
			Edits: []Edit{{
				File: "idempotency/cancel.go",
				From: `return cancel.Meta.Claim == generation`,
				To:   `return cancel.Meta.Claim == generation || planted("cancel_reaches_next_generation")`,
			}},
			CaughtBy: []string{Sim},
		},
		{
			Name: "scan_from_claim", Breaks: "does not see a cancel that was stored before the claim",
			Edits: []Edit{{
				File: "idempotency/cancel.go",
				From: `case !cancel.Former(generation):`,
				To:   `case planted("scan_from_claim"): return !cancel.Former(generation); case !cancel.Former(generation):`,
			}},
			// It takes a canceller that dies between its two writes, and a takeover: schedules show it rarely.
			CaughtBy: []string{"crash:^TestCancelStoredBeforeTheClaimHoldsForTheNextOwner$"},
		},
		{
			Name: "first_claim_chooses", Breaks: "chooses the key of data by the claim of the first data, as long as it stands",
			Edits: []Edit{{
				File: "idempotency/reused_key.go",
				From: `case s.reused != nil:`,
				To:   `case planted("first_claim_chooses"): choice.Reused = s.plain != nil && s.plain.otherData(s.fingerprint); case s.reused != nil:`,
			}},
			CaughtBy: []string{"handlers:^TestReusedKeyIsNotEnteredAgainWhenTheClaimOfItsFirstDataExpires$"},
		},
	}
}

// questions returns the faults that only a turn whose tool asks people shows.
func questions() []Fault {
	return []Fault{
		{
			Name: "park_without_wake_key", Breaks: "parks a turn whatever was stored for it in the meantime",
			Edits: []Edit{{
				File: "idempotency/park.go",
				From: `case rival == nil:`,
				To:   `case rival == nil, planted("park_without_wake_key"):`,
			}},
			CaughtBy: []string{Sim, "crash:^TestAnswerThatComesWhileItsOwnerIsAboutToParkIsNotLost$"},
		},
		{
			Name: "continue_without_read", Breaks: "parks as the next epoch without another read of the questions",
			Edits: []Edit{{
				File: "idempotency/park.go",
				From: `if decided, err := j.decidedBeforeEpoch(`,
				To:   `if planted("continue_without_read") { continue }; if decided, err := j.decidedBeforeEpoch(`,
			}},
			CaughtBy: []string{Sim, "crash:^TestAnswerThatComesBetweenTwoEpochsOfAnOwnerIsNotLost$"},
		},
		{
			Name: "resume_seq_is_duplicate", Breaks: "acknowledges a redelivered answer though it is the lease of the turn",
			Edits: []Edit{{
				File: "idempotency/claim.go",
				From: `case !t.Lease.Same(c.Lease):`,
				To:   `case t.Lease.Same(c.Lease) && c.Signal && planted("resume_seq_is_duplicate"): return Decision{Action: Duplicate, Turn: t}, nil; case !t.Lease.Same(c.Lease):`,
			}},
			CaughtBy: []string{Sim, "crash:^TestMatrixOfTurnsThatAsk$/^after_resume$"},
		},
		{
			Name: "answer_unvalidated", Breaks: "stores invalid answers, and answers to questions that were not asked",
			Edits: []Edit{{
				File: "idempotency/answer.go",
				From: `case t.Claim == nil: //`,
				To:   `case planted("answer_unvalidated"): case t.Claim == nil: //`,
			}},
			CaughtBy: []string{Sim, "crash:^TestAnswerThatDoesNotFitIsRefusedAndTheNextOneStands$"},
		},
		{
			Name: "take_without_epoch", Breaks: "passes an answer to a tool though another run has received it",
			Edits: []Edit{
				{
					File: "idempotency/question.go",
					From: "case rival.Meta.Epoch > h.Epoch:\n\t\treturn ErrLost\n\tcase h.Effect",
					To:   "case planted(\"take_without_epoch\"): return nil; case rival.Meta.Epoch > h.Epoch:\n\t\treturn ErrLost\n\tcase h.Effect",
				},
				{
					File: "idempotency/takeover.go",
					From: `case t.passed(c, q.Taken, run):`,
					To:   `case t.passed(c, q.Taken, run) && !planted("take_without_epoch"):`,
				},
			},
			CaughtBy: []string{Sim},
		},
	}
}

// shared returns the edits that several faults need. The added idempotency/mutants.go has their guards.
func shared() []Edit {
	return []Edit{
		{
			File: "idempotency/claim.go",
			From: `seq, found, rival, err := j.createOrFind(ctx, call, noClaim)`,
			To:   `if d, wrong := j.claimWrongly(ctx, c, call); wrong { return d, nil }; seq, found, rival, err := j.createOrFind(ctx, call, noClaim)`,
		},
		{
			File: "idempotency/finish.go",
			From: `_, rival, err := j.create(ctx, Record{Key: h.Key.Public(events.RecordResponse)`,
			To:   `j.finishWrongly(ctx, h, event); _, rival, err := j.create(ctx, Record{Key: h.Key.Public(events.RecordResponse)`,
		},
	}
}
