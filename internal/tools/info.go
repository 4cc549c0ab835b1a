package tools

// Info identifies a call and its run. It has the fields of [Call] that tools and guards of users
// see; package tool documents them and converts it to its CallInfo.
type Info struct {
	App            string
	Chat           string
	Run            string
	Turn           string
	CallID         string
	Workflow       string
	Agent          string
	UserID         string
	Tool           string
	IdempotencyKey string
	FencingToken   uint64
	Epoch          int
	Attempt        int
	Trace          string
	Depth          int
}

// Info returns the identity of the call.
func (c *Call) Info() Info {
	return Info{
		App: c.Turn.App, Chat: c.Turn.Chat, Run: c.Turn.Run, Turn: c.Turn.Turn, CallID: c.CallID,
		Workflow: c.Workflow, Agent: c.Agent, UserID: c.UserID, Tool: c.Name,
		IdempotencyKey: c.IdempotencyKey, FencingToken: c.FencingToken, Epoch: c.Epoch, Attempt: c.Attempt, Trace: c.Trace, Depth: c.Depth,
	}
}
