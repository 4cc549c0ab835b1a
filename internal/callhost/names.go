package callhost

import (
	"fmt"

	"github.com/oneturn/oneturn/events"
)

// Names gives the questions and surfaces of one attempt of a call their ids: made of their name or, without one, of
// their number. Numbering begins again with each attempt, so that all attempts use the same ids. The zero value
// is ready. The caller holds a mutex.
type Names struct {
	questions, surfaces int               // last numbers given
	tools               map[string]string // by id: the tool that displays it
}

// Question returns the id of a question, see [events.AskID]. A caller that counts itself passes its number, others 0.
// Accept may refuse an id before it is used; nil accepts all.
func (n *Names) Question(name string, number int, tool string, accept func(id string) error) (id string, err error) {
	return n.use(name, number, &n.questions, events.AskID, tool, accept)
}

// Surface is [Names.Question] for a surface, see [events.SurfaceID].
func (n *Names) Surface(name string, number int, tool string, accept func(id string) error) (id string, err error) {
	return n.use(name, number, &n.surfaces, events.SurfaceID, tool, accept)
}

func (n *Names) use(name string, number int, last *int, idOf func(string, int) string, tool string, accept func(id string) error) (string, error) {
	if name == "" && number == 0 {
		*last++
		number = *last
	}
	id := idOf(name, number)
	if _, used := n.tools[id]; used {
		return "", &events.Error{Code: events.CodeToolError, Op: "host", Msg: fmt.Sprintf(
			"duplicate name %.80s: each question or surface of a call needs a unique name, which is the same in every run; "+
				"add a counter to a name that repeats, or omit the name", id)}
	}
	if accept != nil {
		if err := accept(id); err != nil {
			return "", err
		}
	}
	if n.tools == nil {
		n.tools = map[string]string{}
	}
	n.tools[id] = tool
	return id, nil
}

// Displayed returns the id and the tool of what this attempt of a call displays, by its id on the wire, see
// [events.QuestionID]. The error names an id that was not given.
func (n *Names) Displayed(callID, toolCallID string) (id, tool string, err error) {
	call, id, ok := events.ParseQuestionID(toolCallID)
	tool, used := n.tools[id]
	if !ok || call != callID || !used {
		return "", "", &events.Error{Code: events.CodeToolError, Op: "dismiss", Msg: fmt.Sprintf(
			"unknown id %.200q: use the id that Show or Ask returned in this run", toolCallID)}
	}
	return id, tool, nil
}
