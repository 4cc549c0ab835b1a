package events

// Kinds of journal records: the sixth token of a journal key (subjects.ParseKey). A record that is
// an event has the event as its data; its live copy is published on a subject that ends with the
// kind. Other records are private to workers. See docs/wire-contract.md.
const (
	RecordCall     = KindToolCall     // public: the claim of a turn, and the event of the call
	RecordResponse = KindToolResponse // public: the end of a turn
	RecordCancel   = KindCancel       // public: the request to end a turn
	RecordProgram  = "program"        // public: the compiled program of a turn, before its first step
	RecordResult   = "result"         // public: how the steps of a program ended, if a model writes the answer
	RecordAsk      = "ask"            // public, with the id of the question: a question
	RecordAck      = "ack"            // public, with the id of the question: its end
	RecordShow     = "show"           // public, with the id of the surface: a surface that needs no answer
	RecordDismiss  = "dismiss"        // public, with the id: the end of a displayed question or surface
	RecordAnswer   = "answer"         // private, with the id of the question: what decided it
	RecordTaken    = "taken"          // private, with the id of the question: the tool has its answer
	RecordStep     = "step"           // private, with the id of the step: its result
	RecordDelta    = "delta"          // private, with the epoch: changes of the chat's variables
	RecordPark     = "park"           // private, with the epoch: how the epoch ended
	RecordTakeover = "takeover"       // private, with the epoch: the lease of an epoch after the first

	RecordText             = KindText             // public: the claim of a message, and its event
	RecordContextUpdate    = KindContextUpdate    // public, with the token of a variable: its change
	RecordStructuredOutput = KindStructuredOutput // public: the object of an agent without a tool that runs by itself
	RecordHandoff          = KindHandoff          // public: the speaker after a message
	RecordTurn             = "turn"               // private: the turn of a message, if it is not under the key that the text names

	RecordReused = "reused" // private, with a fingerprint: the turn key was used again for other data
)
