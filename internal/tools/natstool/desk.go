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

// say passes a word on the progress on. What the desk says to it changes nothing.
func (c *conversation) say(m *nats.Msg) {
	if c.desk == nil || c.ctx.Err() != nil {
		return
	}
	do, err := c.reader.Read("progress", m.Data)
	if err == nil {
		_, err = do(c.ctx, c.desk)
	}
	if err != nil {
		c.tool.o.Logger.Debug("a word on the progress of a call was dropped", "service", c.tool.name(), "err", err)
	}
}

// operate does one operation at the desk and has the service told what came of it.
func (c *conversation) operate(m *nats.Msg) {
	kind := m.Header.Get(target.HeaderKind)
	do, err := c.reader.Read(kind, m.Data)
	if err == nil && !c.tool.o.MayReply(m.Reply) {
		err = fmt.Errorf("an operation needs a reply subject that is an inbox, not %.100q", m.Reply)
	}
	if err != nil {
		c.refuse(m, events.CodeToolError, err.Error())
		c.stop(fault{wrap(c.op, events.CodeToolError, "the service broke the protocol of its desk", err)})
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
		c.stop(fault{failure(c.op, events.CodeToolError, tooManyOpen())})
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
	if c.desk != nil {
		value, err = do(c.ctx, c.desk)
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
	told, end := operation.Refuse(kind, err)
	if end != nil {
		c.refuse(m, events.CodeCancelled, "the call ends here")
		c.stop(fault{end})
		return
	}
	c.mu.Lock()
	if c.told == nil {
		c.told = map[events.Code]bool{}
	}
	c.told[told.Code] = true
	c.mu.Unlock()
	c.refuse(m, told.Code, told.Message)
}

// respond tells the service what came of an operation. One that is too large to be sent is the
// end of the call: nothing that a tool decides may rest on an answer that it has not got.
func (c *conversation) respond(m *nats.Msg, value operation.Reply) {
	data, err := json.Marshal(value)
	if err == nil {
		err = c.tool.o.Conn.Publish(m.Reply, data)
	}
	if err != nil {
		c.refuse(m, events.CodeToolError, "what came of it cannot be sent")
		c.stop(fault{wrap(c.op, events.CodeToolError, "what the desk gave cannot be sent to the service", err)})
	}
}

func (c *conversation) refuse(m *nats.Msg, code events.Code, words string) {
	if !c.tool.o.MayReply(m.Reply) {
		return
	}
	if err := refuse(c.tool.o.Conn, m.Reply, code, words); err != nil {
		c.tool.o.Logger.Debug("a service could not be told what came of its question", "service", c.tool.name(), "err", err)
	}
}
