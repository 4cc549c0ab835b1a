package natstool

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"github.com/oneturn/oneturn/bindings/model"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/excerpt"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/internal/tools/target"
)

// The answer of a service: result reads a value, failed an error by its headers or its body. ofStatus and codeOf
// are the two tables of codes; refuse writes an error in the same form.

const (
	statusHeader = "Status" // of messages that the server makes
	noResponders = "503"
	maxErrorText = 4 << 10 // bytes of a service's error that count
	maxCode      = 64      // bytes of its codes
)

// header returns a header by its name, in the exact spelling if there is one, else in other letter case:
// not all clients keep it.
func header(h nats.Header, name string) string {
	if v := h.Get(name); v != "" || len(h) == 0 {
		return v
	}
	for key, values := range h {
		if len(values) > 0 && strings.EqualFold(key, name) {
			return strings.TrimSpace(values[0])
		}
	}
	return ""
}

// noService reports whether a message is the server's status that the subject has no subscriber.
func noService(m *nats.Msg) bool {
	return len(m.Data) == 0 && m.Header.Get(statusHeader) == noResponders
}

// result reads the answer of a service.
func (c *conversation) result(m *nats.Msg) (tools.Result, error) {
	if noService(m) {
		c.tool.gone.Store(true)
		return tools.Result{}, tools.Retryable(failure(c.op, events.CodeToolError, "no service answers at "+c.tool.name()+": nothing has happened"))
	}
	if err := c.failed(m); err != nil {
		return tools.Result{}, err
	}
	size := len(m.Data)
	if size > c.tool.o.MaxAnswer {
		return tools.Result{}, tools.Returned(failure(c.op, events.CodeTooLarge, fmt.Sprintf("the service's answer has %d bytes, the limit is %d", size, c.tool.o.MaxAnswer)))
	}
	value, why := target.Answer(m.Data, cmp.Or(header(m.Header, "Content-Type"), "application/json"))
	if why != "" {
		return tools.Result{}, tools.Returned(failure(c.op, events.CodeToolError, fmt.Sprintf("the service's answer (%d bytes) cannot be used: %s", size, why)))
	}
	if value == nil {
		value = json.RawMessage("null")
	}
	value, err := c.conform(value)
	return tools.Result{Value: value}, tools.Returned(err)
}

// conform returns an answer in the form of the output schema of the service.
func (c *conversation) conform(answer json.RawMessage) (json.RawMessage, error) {
	if c.output == nil {
		return answer, nil
	}
	conforming, violations, err := c.output.ConformJSON(answer)
	if err != nil {
		return nil, wrap(c.op, events.CodeToolError, "the service's answer cannot be checked against its output schema", err)
	}
	if len(violations) > 0 {
		refused := &model.Refused{Violations: violations}
		return nil, wrap(c.op, events.CodeToolError, "the service has answered, but its result does not fit its output schema: "+model.Summary(violations), refused)
	}
	return conforming, nil
}

// failed returns the error that the headers of an answer declare, nil if they declare none. Without a text
// in them, its text is in the body.
func (c *conversation) failed(m *nats.Msg) error {
	h := m.Header
	if len(h) == 0 {
		return nil
	}
	sent, status, text := header(h, target.HeaderErrorCode), header(h, micro.ErrorCodeHeader), header(h, micro.ErrorHeader)
	if status == "" && len(m.Data) == 0 { // of the server, or of a gateway
		if s := h.Get(statusHeader); len(s) == 3 && (s[0] == '4' || s[0] == '5') {
			status = s
		}
	}
	if sent == "" && text == "" && fine(status) {
		return nil
	}
	text = cmp.Or(text, failureText(m), "the service failed"+map[bool]string{true: " with status " + excerpt.Of(status, maxCode)}[status != ""])
	text = excerpt.Of(text, maxErrorText)
	code, retryable := ofStatus(status)
	if sent != "" {
		code, retryable = c.codeOf(sent)
	}
	err := wrap(c.op, code, text, &ServiceError{Code: excerpt.Of(sent, maxCode), Status: excerpt.Of(status, maxCode)})
	if retryable {
		wait, _ := target.RetryAfter(header(h, target.HeaderRetryAfter))
		return tools.RetryAfter(err, wait)
	}
	return err
}

// fine reports whether a status means success: some services send one with each answer.
func fine(status string) bool {
	return status == "" || status == "0" || len(status) == 3 && (status[0] == '1' || status[0] == '2')
}

// failureText is the text in the body of a failure.
func failureText(m *nats.Msg) string {
	value, why := target.Answer(m.Data[:min(len(m.Data), maxErrorText)], header(m.Header, "Content-Type"))
	if why != "" || value == nil {
		return ""
	}
	tree, err := events.Decode(value)
	if err != nil {
		return ""
	}
	return target.FailureText(tree)
}

// ofStatus is the meaning of the code of a micro service. Only refusals are retryable.
func ofStatus(status string) (code events.Code, retryable bool) {
	switch status {
	case "400":
		return events.CodeBadArgs, false
	case "404", "409", "422":
		return events.CodeUserError, false
	case "408", "504":
		return events.CodeTimeout, false
	case "413":
		return events.CodeTooLarge, false
	case "429", "503":
		return events.CodeToolError, true
	}
	return events.CodeToolError, false
}

// codeOf is the meaning of the header Oneturn-Error-Code. Besides the codes of any tool, a service may
// repeat the codes that its host has sent it.
func (c *conversation) codeOf(sent string) (code events.Code, retryable bool) {
	if sent == target.CodeRetryable {
		return events.CodeToolError, true
	}
	code = events.Code(sent)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sentCodes[code] {
		return code, false
	}
	return target.CodeOf(sent), false
}

// ServiceError is in the chain of the error of a service that answered with a failure.
type ServiceError struct {
	Code   string // of the header Oneturn-Error-Code
	Status string // of the header Nats-Service-Error-Code
}

// Error implements error. The surrounding [events.Error] has the message.
func (e *ServiceError) Error() string {
	return "service error " + strings.TrimSpace(e.Code+" "+e.Status)
}

// refuse answers an operation of a service with an error, in the form of a service's errors.
func refuse(conn *nats.Conn, reply string, code events.Code, text string) error {
	m := nats.NewMsg(reply)
	m.Header[target.HeaderErrorCode] = []string{string(code)}
	m.Header[micro.ErrorCodeHeader] = []string{"409"}
	m.Header[micro.ErrorHeader] = []string{excerpt.Line(text, maxErrorText)}
	if err := conn.PublishMsg(m); err != nil {
		return fmt.Errorf("answer a service: %w", err)
	}
	return nil
}
