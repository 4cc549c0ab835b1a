// Package mutant names faults that can be planted in the journal and the handlers, to see
// that the simulation (package internal/test/sim), the crash and the chaos tests find them. Without the build
// tag `mutants` nothing can be planted and the compiler removes the planted code; with it, the
// variable ONETURN_MUTANT names the one fault that is in force.
package mutant

// Name names a fault.
type Name string

// The faults: each breaks one rule of the journal.
const (
	// NoIntent enters the tool before the claim is confirmed.
	NoIntent Name = "no_intent"
	// MarkAfterRun writes the claim after the tool.
	MarkAfterRun Name = "mark_after_run"
	// ReadDecides takes a turn for free because a read saw no claim.
	ReadDecides Name = "read_decides"
	// UnknownIsSuccess takes a write without an answer for stored.
	UnknownIsSuccess Name = "unknown_is_success"
	// UnfencedTerminal stores a response beside the one that is there.
	UnfencedTerminal Name = "unfenced_terminal"
	// AckBeforePublish acknowledges a message whose response may not be stored.
	AckBeforePublish Name = "ack_before_publish"
	// NoReaper takes every claim of somebody else for one that will end by itself.
	NoReaper Name = "no_reaper"
	// DedupeWindowOnly trusts the duplicate window of the stream: a message is a turn.
	DedupeWindowOnly Name = "dedupe_window_only"
	// MsgIDDecides takes a Nats-Msg-Id that was seen before for a duplicate.
	MsgIDDecides Name = "msgid_decides"
	// RejectOtherKey stores rejections where they do not compete with claims.
	RejectOtherKey Name = "reject_other_key"
	// StaleDeliveryTakesOver lets an older delivery of a message take the turn from a newer one.
	StaleDeliveryTakesOver Name = "stale_delivery_takes_over"
	// TakeoverIgnoresEffect enters every tool again.
	TakeoverIgnoresEffect Name = "takeover_ignores_effect"
	// ResumeTakesHeld lets a resume take a turn whose message is still in the stream.
	ResumeTakesHeld Name = "resume_takes_held"
	// ScanFromClaim does not see a cancel that was stored before the claim. Schedules show it rarely.
	ScanFromClaim Name = "scan_from_claim"
	// ParkWithoutWakeKey parks a turn whatever has been stored for it in the meantime.
	ParkWithoutWakeKey Name = "park_without_wake_key"
	// ContinueWithoutLook parks as the next epoch without another look at the questions.
	ContinueWithoutLook Name = "continue_without_look"
	// ResumeSeqIsDuplicate takes a redelivered answer for done, though it holds the turn.
	ResumeSeqIsDuplicate Name = "resume_seq_is_duplicate"
	// TakeoverWithoutSeal takes a turn over whose owner may park behind its back.
	TakeoverWithoutSeal Name = "takeover_without_seal"
	// WakeWithoutReread decides how a turn goes on by what was read before it was taken over.
	WakeWithoutReread Name = "wake_without_reread"
	// TakeWithoutEpoch hands an answer to a tool that another run has handed it to.
	TakeWithoutEpoch Name = "take_without_epoch"
	// AnswerUnvalidated stores answers that do not fit, and those to questions nobody asked.
	AnswerUnvalidated Name = "answer_unvalidated"
	// TakeoverRunsBinding enters, in a takeover, the tool that the manifests bind today.
	TakeoverRunsBinding Name = "takeover_runs_binding"
	// StaleReadBelieved decides how a turn continues by a read that lacks its own takeover.
	StaleReadBelieved Name = "stale_read_believed"
	// MergeBeforeFinish merges context changes before it is known whether their run ends the turn.
	MergeBeforeFinish Name = "merge_before_finish"
	// LiveCancelDecides ends a tool because of the live copy of a cancel, whether there is one or not.
	LiveCancelDecides Name = "live_cancel_decides"
	// ResultIsGivenUp drops the result of a tool when the lease is lost before it is stored.
	ResultIsGivenUp Name = "result_is_given_up"
	// LostLeaseEndsWait ends a run of an unsafe tool that waits for a person when its lease is lost.
	LostLeaseEndsWait Name = "lost_lease_ends_wait"
	// StrangerTakesOver takes turns over whose workflow the worker does not know.
	StrangerTakesOver Name = "stranger_takes_over"
	// BudgetIgnored gives messages back with a delay however many places they take.
	BudgetIgnored Name = "budget_ignored"
	// FormerLifeStands takes what is left of a former life of a key for a record of the turn that has
	// claimed it since.
	FormerLifeStands Name = "former_life_stands"
	// LeaseWithoutTime takes a delivery for its own, refreshes it and gives it back however long ago
	// its last heartbeat was.
	LeaseWithoutTime Name = "lease_without_time"
	// AgeFromReceipt takes a delivery for one that was sent when it was received.
	AgeFromReceipt Name = "age_from_receipt"
	// PingBoundsUnread takes the answer to a ping for a bound of deliveries that were read before it.
	PingBoundsUnread Name = "ping_bounds_unread"
	// FullStoreClaims claims new turns while the store is nearly full.
	FullStoreClaims Name = "full_store_claims"
	// AsideUnderLater acknowledges a message that is put aside, whatever a later delivery holds.
	AsideUnderLater Name = "aside_under_later"
	// NoRoomDrops acknowledges what waits and must not be put aside, and nobody learns of it.
	NoRoomDrops Name = "no_room_drops"
	// RoomIgnored puts messages aside however many there are.
	RoomIgnored Name = "room_ignored"
	// CancelReachesNextLife takes a cancel that names the claim of a former life of a key for one of the turn that
	// has claimed it since.
	CancelReachesNextLife Name = "cancel_reaches_next_life"
	// WorkerClockDecides measures how old a message is by the clock of the worker.
	WorkerClockDecides Name = "worker_clock_decides"
	// EarlyIsUnknown rejects an answer that is faster than the record of its question.
	EarlyIsUnknown Name = "early_is_unknown"
	// DrainKeepsBuffer gives a message that no handler has begun back, in a drain, when a slot is free.
	DrainKeepsBuffer Name = "drain_keeps_buffer"
	// AckWaitReadOnce sends heartbeats for the ack wait that the consumer had at the start.
	AckWaitReadOnce Name = "ack_wait_read_once"
	// SweepWritesOver has a sweep write over what another one has committed while it stood still.
	SweepWritesOver Name = "sweep_writes_over" //nolint:gosec // no credential
	// SweepForgetsUnseen drops an open turn whose claim one read did not show.
	SweepForgetsUnseen Name = "sweep_forgets_unseen"
	// CountGivesUp makes a dead letter of any message that was delivered some times.
	CountGivesUp Name = "count_gives_up"
)

// The faults of sweeps. The tests of package handlers have to find them.
const (
	// SweepResumesAgain publishes another resume of a turn whose last one nobody has taken yet.
	SweepResumesAgain Name = "sweep_resumes_again"
	// SweepStarves begins every sweep at the same turns and stops where its budget is used up.
	SweepStarves Name = "sweep_starves"
	// SweepTrustsOldPages takes a parked turn for unchanged though a sweep that did not come to it has
	// read what changed it.
	SweepTrustsOldPages Name = "sweep_trusts_old_pages"
	// SweepForgetsTheRest loses the turns that a sweep that is stopped does not come to.
	SweepForgetsTheRest Name = "sweep_forgets_the_rest"
)

// The faults that tests of package handlers alone have to find.
const (
	// ReplicaDecides takes a blob that a replica lacks for gone.
	ReplicaDecides Name = "replica_decides"
	// ShortReadIsWhole takes the headers that a replica has for all.
	ShortReadIsWhole Name = "short_read_is_whole"
	// FirstClaimPlaces decides where data of a reused key runs by the claim of the first data, as long as that stands.
	FirstClaimPlaces Name = "first_claim_places"
	// DueHasOneID gives what is due the same message id however often it is scheduled.
	DueHasOneID Name = "due_has_one_id"
	// ReplyAnywhere sends a reply to whatever subject its request names.
	ReplyAnywhere Name = "reply_anywhere"
)

// All returns all faults that a simulated schedule shows.
func All() []Name {
	return append([]Name{
		NoIntent, MarkAfterRun, ReadDecides, UnknownIsSuccess, UnfencedTerminal, AckBeforePublish, NoReaper,
		DedupeWindowOnly, MsgIDDecides, RejectOtherKey, TakeoverIgnoresEffect, ResumeTakesHeld, ScanFromClaim,
	}, append(OfQuestions(), OfSchedules()...)...)
}

// OfSweeps returns the faults of sweeps, which are not among [All].
func OfSweeps() []Name {
	return []Name{SweepResumesAgain, SweepStarves, SweepTrustsOldPages, SweepForgetsTheRest}
}

// OfHandlers returns the faults that tests of package handlers find, by the tests, as -test.run takes them. They are
// not among [All].
func OfHandlers() map[Name]string {
	return map[Name]string{
		ReplicaDecides:   "^TestBlobThatAReplicaDoesNotHaveYetIsReadFromTheLeader$",
		ShortReadIsWhole: "^TestHeadersAreReadToTheLastOrFailWhenAReplicaLags$",
		FirstClaimPlaces: "^TestReusedKeyIsNotEnteredAgainWhenTheClaimOfItsFirstDataExpires$",
		DueHasOneID:      "^TestExpiryThatCameTooSoonIsPublishedAgain$",
		ReplyAnywhere:    "^TestVerdictGoesToInboxesOnly$",
	}
}

// OfJournal returns the faults that tests of package idempotency find, likewise. A schedule that shows one comes once in
// ten thousand.
func OfJournal() map[Name]string {
	return map[Name]string{StaleReadBelieved: "^TestTakeoverIsDecidedByAReadThatHasTheTakeover$"}
}

// OfQuestions returns the faults that only a turn whose tool asks people can show.
func OfQuestions() []Name {
	return []Name{
		ParkWithoutWakeKey, ContinueWithoutLook, ResumeSeqIsDuplicate, TakeoverWithoutSeal, WakeWithoutReread, AnswerUnvalidated,
	}
}

// OfSchedules returns the faults that need an order of events which only the simulation can bring
// about: no test of real workers has to find them.
func OfSchedules() []Name {
	return []Name{
		StaleDeliveryTakesOver, // a delivery whose worker hears nothing of the server ages, and claims nothing
		TakeoverRunsBinding,
		TakeWithoutEpoch,
		StrangerTakesOver,
		LeaseWithoutTime,
		AgeFromReceipt,
		PingBoundsUnread,
		BudgetIgnored,
		MergeBeforeFinish,
		LiveCancelDecides,
		AsideUnderLater,
		NoRoomDrops,
		RoomIgnored,
		CancelReachesNextLife,
		FullStoreClaims,
		WorkerClockDecides,
		EarlyIsUnknown,
		DrainKeepsBuffer,
		AckWaitReadOnce,
		SweepWritesOver,
		SweepForgetsUnseen,
		CountGivesUp,
		FormerLifeStands,
		ResultIsGivenUp,
		LostLeaseEndsWait,
	}
}
