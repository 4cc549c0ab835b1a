package events

// Usage is what the corrections of an agent's output have cost: calls of models, and the tokens that their endpoints report.
type Usage struct {
	Calls            int   `json:"calls"`
	PromptTokens     int64 `json:"prompt_tokens"`     // 0 also where the endpoint does not report it
	CompletionTokens int64 `json:"completion_tokens"` // likewise
}

// Plus returns the sum of both; a nil Usage is nothing.
func (u *Usage) Plus(other Usage) Usage {
	if u == nil {
		return other
	}
	return Usage{u.Calls + other.Calls, u.PromptTokens + other.PromptTokens, u.CompletionTokens + other.CompletionTokens}
}

func (w *writer) usage(u *Usage) {
	if u == nil {
		return
	}
	w.open("usage")
	w.integer("calls", int64(u.Calls))
	w.integer("prompt_tokens", u.PromptTokens)
	w.integer("completion_tokens", u.CompletionTokens)
	w.close()
}
