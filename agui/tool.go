package agui

import stdjson "encoding/json"

// Tool is a tool that a client offers, or that an agent has.
type Tool struct {
	Name        string             `json:"name"`
	Description string             `json:"description"`
	Parameters  stdjson.RawMessage `json:"parameters,omitzero"` // JSON Schema
	Metadata    stdjson.RawMessage `json:"metadata,omitzero"`   // an object
}

// Context is a fact that the application adds to a run.
type Context struct {
	Description string `json:"description"`
	Value       string `json:"value"`
}

// TokenUsage is what a model used. Zero counts are omitted.
type TokenUsage struct {
	Provider              string `json:"provider,omitzero"`
	Model                 string `json:"model,omitzero"`
	InputTokens           int64  `json:"inputTokens,omitzero"`
	OutputTokens          int64  `json:"outputTokens,omitzero"`
	TotalTokens           int64  `json:"totalTokens,omitzero"`
	ReasoningTokens       int64  `json:"reasoningTokens,omitzero"`
	CachedInputTokens     int64  `json:"cachedInputTokens,omitzero"`
	CacheWriteInputTokens int64  `json:"cacheWriteInputTokens,omitzero"`
}
