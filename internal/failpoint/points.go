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

// Points of a turn whose tool is a program, in the order in which it reaches them. The numbers are the rows of the table of
// programs in docs/guarantees.md.
const (
	BeforePlanner     = "before_planner"      // P3: the call of the planner is stored, it is not asked
	AfterPlannerReply = "after_planner_reply" // P3: the planner has replied, nothing is stored of it
	AfterPlanner      = "after_planner"       // P4: the reply of the planner is stored
	Program           = "program"             // P5: the write of the program
	AfterProgram      = "after_program"       // P5, P6: the program is stored, no step is called
	StepCall          = "step_call"           // P7: the write of the call of a step, or of an agent that plans or responds
	AfterStepCall     = "after_step_call"     // P8: a step is called, its tool is not entered
	AfterStep         = "after_step"          // P8: the tool of a step has returned, nothing is stored of it
	StepResponse      = "step_response"       // P9: the write of the response of a step, or of an agent that plans or responds
	AfterStepResponse = "after_step_response" // P6, P11: the response of a step is stored
	AfterSteps        = "after_steps"         // P13: all steps have ended, nothing is stored of the result
	Result            = "result"              // P13: the write of the result, before an agent responds
	BeforeResponder   = "before_responder"    // P14: the call of the responder is stored, it is not asked
	AfterResponder    = "after_responder"     // P14: the responder has replied, nothing is stored of it
)

// Points of a message of an agent or a user, in the order in which it reaches them. The numbers are the rows of the table of messages
// in docs/guarantees.md.
const (
	BeforeText           = "before_text"            // A1: nothing is stored
	Text                 = "text"                   // A1: the write of the text
	AfterText            = "after_text"             // A2: the text is stored, the document of the chat is not changed
	Document             = "document"               // A2, A6: the write of the document of the chat, also for a tool that changes variables
	AfterApply           = "after_apply"            // A3: the document is changed, nothing is reported
	Update               = "update"                 // A3: the write of the event of a changed variable
	AfterUpdate          = "after_update"           // A3, A4: a changed variable is reported
	Output               = "output"                 // A4: the write of the structured output of an agent that calls no tool
	BeforeCorrection     = "before_correction"      // A8: the call of a correction is stored, the model is not asked
	AfterCorrectionReply = "after_correction_reply" // A8: the model has replied, nothing is stored of it
	AfterCorrection      = "after_correction"       // A9: the reply is stored, its turn is not claimed
	AfterDecision        = "after_decision"         // A7: the next speaker is decided, the event is not stored
	Handoff              = "handoff"                // A7: the write of that event
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
