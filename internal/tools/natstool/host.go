package natstool

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/operation"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/internal/tools/target"
)

// Operations that a service requests of the host of its call: operate checks and starts one, do runs it, respond
// and refuse send the reply.

// relayProgress passes a progress report to the host. An error of the host changes nothing.
func (c *conversation) relayProgress(m *nats.Msg) {
	if c.host == nil || c.ctx.Err() != nil {
		return
	}
	do, err := c.reader.Read("progress", m.Data)
	if err == nil {
		_, err = do(c.ctx, c.host)
	}
	if err != nil {
		c.tool.o.Logger.Debug("a progress report of a call was dropped", "service", c.tool.name(), "err", err)
	}
}

// operate runs one operation of the host and sends the result to the service.
func (c *conversation) operate(m *nats.Msg) {
	kind := m.Header.Get(target.HeaderKind)
	do, err := c.reader.Read(kind, m.Data)
	if err == nil && !c.tool.o.MayReply(m.Reply) {
		err = fmt.Errorf("an operation needs a reply subject that is an inbox, not %.100q", m.Reply)
	}
	if err != nil {
		c.refuse(m, events.CodeToolError, err.Error())
		c.stop(&tools.ProtocolError{Err: wrap(c.op, events.CodeToolError, "the service broke the protocol of its host", err)})
		return
	}
	c.mu.Lock()
	full := c.busy >= operation.MaxOpen
	if !full {
		c.busy++
	}
	c.mu.Unlock()
	if full {
		c.refuse(m, events.CodeToolError, tooManyOpen())
		c.stop(&tools.ProtocolError{Err: failure(c.op, events.CodeToolError, tooManyOpen())})
		return
	}
	c.work.Go(func() {
		c.do(kind, do, m)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.busy--
	})
}

func (c *conversation) do(kind string, do operation.Operation, m *nats.Msg) {
	var value operation.Reply
	err := operation.NoHost(c.op)
	if c.host != nil {
		value, err = do(c.ctx, c.host)
	}
	switch {
	case err == nil:
		c.respond(m, value)
		return
	case errors.Is(err, tools.ErrParked):
		c.stop(tools.ErrParked)
	}
	if c.ctx.Err() != nil {
		code, words := c.why()
		c.refuse(m, events.Code(code), words)
		return
	}
	refusal, end := operation.Refuse(kind, err)
	if end != nil {
		c.refuse(m, events.CodeCancelled, "the call ends here")
		c.stop(&tools.ProtocolError{Err: end})
		return
	}
	c.mu.Lock()
	if c.sentCodes == nil {
		c.sentCodes = map[events.Code]bool{}
	}
	c.sentCodes[refusal.Code] = true
	c.mu.Unlock()
	c.refuse(m, refusal.Code, refusal.Message)
}

// respond sends the result of an operation to the service. A result that is too large to be sent
// ends the call: no decision of a tool may depend on an answer that it has not got.
func (c *conversation) respond(m *nats.Msg, value operation.Reply) {
	data, err := json.Marshal(value)
	if err == nil {
		err = c.tool.o.Conn.Publish(m.Reply, data)
	}
	if err != nil {
		c.refuse(m, events.CodeToolError, "the result of the operation cannot be sent")
		c.stop(&tools.ProtocolError{Err: wrap(c.op, events.CodeToolError, "the result of an operation of the host cannot be sent to the service", err)})
	}
}

func (c *conversation) refuse(m *nats.Msg, code events.Code, words string) {
	if !c.tool.o.MayReply(m.Reply) {
		return
	}
	if err := refuse(c.tool.o.Conn, m.Reply, code, words); err != nil {
		c.tool.o.Logger.Debug("a reply to an operation of a service could not be sent", "service", c.tool.name(), "err", err)
	}
}
