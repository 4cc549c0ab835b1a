package failpoint

// Points of the journal's path, in the order in which a turn meets them. The numbers are
// those of the crash table in docs/guarantees.md.
const (
	BeforeClaim   = "before_claim"   // C0: nothing is stored
	Claim         = "claim"          // C1: the write of the claim
	AfterClaim    = "after_claim"    // C2-C5: claimed, the tool is not entered
	AfterTool     = "after_tool"     // C7: the tool has returned, nothing is stored of it
	AfterDelta    = "after_delta"    // context changes stored, not merged
	AfterMerge    = "after_merge"    // context changes merged, no response
	Finish        = "finish"         // C8: the write of the response
	AfterFinish   = "after_finish"   // C9-C11: response stored, message not acknowledged
	AfterAck      = "after_ack"      // C12: acknowledged, perhaps lost
	Seal          = "seal"           // the write that seals an epoch
	AfterSeal     = "after_seal"     // sealed, not taken over
	Takeover      = "takeover"       // the write of a takeover
	AfterTakeover = "after_takeover" // taken over, the tool is not entered again
	Heartbeat     = "heartbeat"      // a sign of life for a message; drop_req: it is lost on its way
)
