package events

import "strconv"

// CorrectedTurn returns the key of the turn that correction n of the message makes; 0 is the turn of the message itself.
func (t *Text) CorrectedTurn(n int) string {
	if n == 0 {
		return t.Turn
	}
	return t.Turn + "~" + strconv.Itoa(n)
}

// Correction is the payload of the response of a model that was asked to correct an output: its reply, and what was read in it.
type Correction struct {
	Content          any        `json:"content"` // the reply: a text, or the JSON of an agent that is not a model
	FinishReason     string     `json:"finish_reason,omitempty"`
	PromptTokens     int64      `json:"prompt_tokens"` // 0 also where the endpoint does not report it
	CompletionTokens int64      `json:"completion_tokens"`
	StructuredOutput any        `json:"structured_output,omitempty"` // the object in it
	Repairs          []string   `json:"repairs,omitempty"`           // these three as in a [Text]
	Around           []string   `json:"around,omitempty"`
	Warnings         []string   `json:"warnings,omitempty"`
	Unread           *Rejection `json:"unread,omitempty"` // why it has no object, or of an agent without a tool why that does not fit the model
	Final            bool       `json:"final,omitempty"`  // it was cut off: no other correction follows
}

// ReadCorrection decodes a [Correction] from the value tree of a payload.
func ReadCorrection(payload any) (Correction, error) {
	var c Correction
	object, ok := payload.(map[string]any)
	if !ok {
		return c, decodeError("the payload of a correction is " + typeName(payload) + ": expected an object")
	}
	return c, (&Message{Data: object}).As(&c)
}
