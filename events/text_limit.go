package events

import "github.com/oneturn/oneturn/internal/excerpt"

// MaxText bounds a text for people in an event (content, agent_message), in bytes. The whole
// of it is in the payload, or in the blob that stands for it.
const MaxText = 64 << 10

// Clip returns text, cut to at most [MaxText] bytes and an ellipsis.
func Clip(text string) string {
	const ellipsis = "…"
	if len(text) <= MaxText {
		return text
	}
	return excerpt.Of(text, MaxText-len(ellipsis)) + ellipsis
}
