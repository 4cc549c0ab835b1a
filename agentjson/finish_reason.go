package agentjson

import "strings"

// Incomplete returns what is wrong with an output that ended for a finish reason, and what to do; "" if the output is complete or the
// reason is not known. Endpoints write the reasons in different cases, with underscores and with hyphens.
func Incomplete(reason string) string {
	switch strings.ToLower(strings.ReplaceAll(strings.TrimSpace(reason), "-", "_")) {
	case "length", "max_tokens", "max_output_tokens", "max_length", "model_length", "model_context_window_exceeded", "error_limit", "incomplete":
		return "the output was cut off at the token limit: send a shorter one, or raise the limit"
	case "content_filter", "content_filtered", "guardrail_intervened", "safety", "recitation", "blocklist", "prohibited_content", "spii",
		"error_toxic", "refusal":
		return "a filter of the endpoint has stopped the output: ask for something else"
	case "error", "failed", "cancelled", "canceled", "abort", "aborted", "timeout", "malformed_function_call":
		return "the endpoint reports that the output was broken off: ask again"
	default:
		return ""
	}
}
