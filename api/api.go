// Package api has the wire types of the request API, the NATS micro service that every worker serves: the
// JSON bodies and headers of its requests and replies. docs/wire-contract.md describes it in full.
//
// A request is published to <prefix>.api.<app>.<verb> (subjects.Space.API), so a client needs permissions
// for the subjects of its tenant only. [VerbTurn] and [VerbHistory] read events of the journal and reply
// with a [Page] (records.go), [VerbTurn] also with the steps of a program (step.go); [VerbQuestions] replies
// with [Questions], and [VerbAnswer] with an events.AnswerResult (questions.go); [VerbBlob] returns pieces of
// large payloads (blob.go), [VerbContext] the context variables of a chat ([Context], context.go). An error has the headers Nats-Service-Error-Code and Nats-Service-Error, and no
// body. Programs in Go use oneturn.Client instead, which makes these requests.
package api

// Verbs of the request API: the last token of the subject.
const (
	VerbTurn      = "turn"      // one turn, see [TurnRequest]
	VerbHistory   = "history"   // the events of a chat, see [HistoryRequest]
	VerbQuestions = "questions" // questions to people, see [QuestionsRequest]
	VerbAnswer    = "answer"    // answers a question, see [AnswerRequest]
	VerbBlob      = "blob"      // a piece of a payload over the inline limit, see [BlobRequest]
	VerbContext   = "context"   // the context variables of a chat, see [ContextRequest]

	// VerbWaits is the former name of [VerbQuestions]: its reply has the key waits instead of questions.
	//
	// Deprecated: use [VerbQuestions]. Workers serve the former verb for one more release.
	VerbWaits = "waits"
)

// WorkerState is what a worker reports of itself in the statistics of its request API.
type WorkerState struct {
	NotReady string `json:"not_ready,omitempty"` // why it is not ready, as in /readyz; "" if it is
}
