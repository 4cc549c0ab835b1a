package agui

// Capabilities is what an agent can do. What it does not declare is unknown, not absent, so false is written only where a
// pointer allows it.
type Capabilities struct {
	Identity       *IdentityCapabilities       `json:"identity,omitzero"`
	Transport      *TransportCapabilities      `json:"transport,omitzero"`
	Tools          *ToolsCapabilities          `json:"tools,omitzero"`
	Output         *OutputCapabilities         `json:"output,omitzero"`
	State          *StateCapabilities          `json:"state,omitzero"`
	MultiAgent     *MultiAgentCapabilities     `json:"multiAgent,omitzero"`
	Reasoning      *ReasoningCapabilities      `json:"reasoning,omitzero"`
	Multimodal     *MultimodalCapabilities     `json:"multimodal,omitzero"`
	Execution      *ExecutionCapabilities      `json:"execution,omitzero"`
	HumanInTheLoop *HumanInTheLoopCapabilities `json:"humanInTheLoop,omitzero"`
	Custom         map[string]any              `json:"custom,omitempty"`
}

// IdentityCapabilities describes the agent to people.
type IdentityCapabilities struct {
	Name             string         `json:"name,omitzero"`
	Type             string         `json:"type,omitzero"`
	Description      string         `json:"description,omitzero"`
	Version          string         `json:"version,omitzero"`
	Provider         string         `json:"provider,omitzero"`
	DocumentationURL string         `json:"documentationUrl,omitzero"`
	Metadata         map[string]any `json:"metadata,omitempty"`
}

// TransportCapabilities are the transports. The specification forbids clients to expect pushNotifications and resumable of
// agents on HTTP, so there are no fields for them.
type TransportCapabilities struct {
	Streaming  *bool `json:"streaming,omitzero"`
	Websocket  *bool `json:"websocket,omitzero"`
	HTTPBinary *bool `json:"httpBinary,omitzero"`
}

// ToolsCapabilities is about tools of the agent (Items) and of the client.
type ToolsCapabilities struct {
	Supported      *bool  `json:"supported,omitzero"`
	Items          []Tool `json:"items,omitempty"`
	ParallelCalls  *bool  `json:"parallelCalls,omitzero"`
	ClientProvided *bool  `json:"clientProvided,omitzero"`
}

// OutputCapabilities is about results.
type OutputCapabilities struct {
	StructuredOutput   *bool    `json:"structuredOutput,omitzero"`
	SupportedMimeTypes []string `json:"supportedMimeTypes,omitempty"`
}

// StateCapabilities is about shared state and memory.
type StateCapabilities struct {
	Snapshots       *bool `json:"snapshots,omitzero"`
	Deltas          *bool `json:"deltas,omitzero"`
	Memory          *bool `json:"memory,omitzero"`
	PersistentState *bool `json:"persistentState,omitzero"`
}

// MultiAgentCapabilities is about other agents.
type MultiAgentCapabilities struct {
	Supported  *bool          `json:"supported,omitzero"`
	Delegation *bool          `json:"delegation,omitzero"`
	Handoffs   *bool          `json:"handoffs,omitzero"`
	Subagents  []SubagentInfo `json:"subagents,omitempty"`
}

// SubagentInfo is a subagent that may be invoked.
type SubagentInfo struct {
	Name        string `json:"name"`
	Description string `json:"description,omitzero"`
}

// ReasoningCapabilities is about reasoning events.
type ReasoningCapabilities struct {
	Supported *bool `json:"supported,omitzero"`
	Streaming *bool `json:"streaming,omitzero"`
	Encrypted *bool `json:"encrypted,omitzero"`
}

// MultimodalCapabilities is about media in messages.
type MultimodalCapabilities struct {
	Input  *MultimodalInput  `json:"input,omitzero"`
	Output *MultimodalOutput `json:"output,omitzero"`
}

// MultimodalInput is what users may send.
type MultimodalInput struct {
	Image *bool `json:"image,omitzero"`
	Audio *bool `json:"audio,omitzero"`
	Video *bool `json:"video,omitzero"`
	PDF   *bool `json:"pdf,omitzero"`
	File  *bool `json:"file,omitzero"`
}

// MultimodalOutput is what the agent may send.
type MultimodalOutput struct {
	Image *bool `json:"image,omitzero"`
	Audio *bool `json:"audio,omitzero"`
}

// ExecutionCapabilities is about running code, and limits.
type ExecutionCapabilities struct {
	CodeExecution    *bool `json:"codeExecution,omitzero"`
	Sandboxed        *bool `json:"sandboxed,omitzero"`
	MaxIterations    int64 `json:"maxIterations,omitzero"`
	MaxExecutionTime int64 `json:"maxExecutionTime,omitzero"` // milliseconds
}

// HumanInTheLoopCapabilities is about questions to people.
type HumanInTheLoopCapabilities struct {
	Supported        *bool `json:"supported,omitzero"`
	Approvals        *bool `json:"approvals,omitzero"`
	Interventions    *bool `json:"interventions,omitzero"`
	Feedback         *bool `json:"feedback,omitzero"`
	Interrupts       *bool `json:"interrupts,omitzero"`
	ApproveWithEdits *bool `json:"approveWithEdits,omitzero"`
}
