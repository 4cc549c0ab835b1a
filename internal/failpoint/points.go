package failpoint

// Points of the journal's path, in the order in which a turn reaches them. The numbers are
// the rows of the crash table in docs/guarantees.md.
const (
	BeforeClaim   = "before_claim"   // C0: nothing is stored
	Claim         = "claim"          // C1: the write of the claim
	AfterClaim    = "after_claim"    // C2-C5: claimed, the tool is not entered
	AfterTool     = "after_tool"     // C7: the tool has returned, nothing is stored of it
	AfterDelta    = "after_delta"    // context changes in the journal, not staged
	AfterMerge    = "after_merge"    // context changes merged after the response, not acknowledged
	Finish        = "finish"         // C8: the write of the response
	AfterFinish   = "after_finish"   // C9-C11: response stored, message not acknowledged
	AfterAck      = "after_ack"      // C12: acknowledged, perhaps lost
	Seal          = "seal"           // the write that seals an epoch
	AfterSeal     = "after_seal"     // sealed, not taken over
	Takeover      = "takeover"       // the write of a takeover
	AfterTakeover = "after_takeover" // taken over, the tool is not entered again
	Heartbeat     = "heartbeat"      // renews the lease of a message; drop_req: it is lost on its way
)

// Points of a turn whose tool is a program.
const (
	AfterPlanner      = "after_planner"       // the reply of the planner is stored
	AfterProgram      = "after_program"       // the program is stored, no step is called
	AfterStepCall     = "after_step_call"     // a step is called, its tool is not entered
	AfterStep         = "after_step"          // the tool of a step has returned, nothing is stored of it
	AfterStepResponse = "after_step_response" // the response of a step is stored
)

// Points of a turn whose tool asks people, in the order in which it reaches them.
const (
	BeforeAsk      = "before_ask"      // the tool asks, nothing is stored of it
	Ask            = "ask"             // the write of the question
	AfterAsk       = "after_ask"       // the question is stored, its end is scheduled, and the tool waits
	BeforePark     = "before_park"     // the owner is about to park the turn
	BeforeContinue = "before_continue" // it was woken for another question, and continues as the next epoch to park again
	Park           = "park"            // the write that parks the turn
	AfterPark      = "after_park"      // parked, the message is not acknowledged
	Answer         = "answer"          // the write of what decides a question
	Closed         = "closed"          // the write of the event that closes the question in frontends
	AfterAnswer    = "after_answer"    // decided, no owner was woken
	Wake           = "wake"            // the write that wakes the owner
	AfterWake      = "after_wake"      // the owner in memory was notified, the answer is not acknowledged
	AfterResume    = "after_resume"    // taken over by what decided it, the tool is not entered again
	BeforeTaken    = "before_taken"    // the owner has read the answer
	Taken          = "taken"           // the write that records that
	AfterTaken     = "after_taken"     // the tool is about to receive the answer
	Step           = "step"            // the write of the result of a step
	Show           = "show"            // the write of what is displayed and needs no answer
)
