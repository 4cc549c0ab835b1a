package gateway

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"time"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/gateway/auth"
)

// Times of a body.
const (
	bodyIdle = 10 * time.Second // how long a client may send nothing while its body is read
	bodyTime = time.Minute      // how long a body may take
)

// leaveBody lets the server reply without the body of a request: it would wait for a part of it first, for as long as the
// client wants.
func leaveBody(w http.ResponseWriter, r *http.Request) {
	if r.ContentLength != 0 {
		_ = http.NewResponseController(w).SetReadDeadline(time.Now()) // a writer without deadlines waits
	}
}

// readBody reads the JSON body of a request. What is too large is refused by its length, before it is read.
func (g *Gateway) readBody(c *call) ([]byte, error) {
	return g.readUpTo(c, g.o.Limits.Body, "store the data elsewhere and send a reference")
}

// readRunBody is readBody of the input of a run, in which a client may send back all messages that it has.
func (g *Gateway) readRunBody(c *call) ([]byte, error) {
	return g.readUpTo(c, g.o.Limits.RunBody, "send fewer messages, the chat has the others")
}

// readUpTo is readBody with a limit, and with what to do about a larger one.
func (g *Gateway) readUpTo(c *call, most int64, fix string) ([]byte, error) {
	if kind, _, err := mime.ParseMediaType(c.r.Header.Get("Content-Type")); err != nil || kind != "application/json" || c.r.Header.Get("Content-Encoding") != "" {
		return nil, refuse(http.StatusUnsupportedMediaType, "unsupported_media_type", "the body has another type: send JSON with Content-Type: application/json, not compressed")
	}
	tooLarge := refuse(http.StatusRequestEntityTooLarge, "too_large", fmt.Sprintf("the body is larger than %d bytes: %s", most, fix))
	if c.r.ContentLength > most {
		return nil, tooLarge
	}
	size := c.r.ContentLength
	if size < 0 {
		size = most
	}
	c.held = held{b: g.bodies, of: auth.Target{App: tenantOf(c.id, c.target), User: cmp.Or(c.target.User, c.id.User)}}
	if err := c.held.arrive(c.r.Context(), int(size)); err != nil {
		return nil, err
	}
	control := http.NewResponseController(c.w)
	body, err := io.ReadAll(io.LimitReader(&patient{c.r.Body, control, time.Now().Add(bodyTime)}, most+1))
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, refuse(http.StatusRequestTimeout, "timeout", "the body did not arrive: send it without pauses")
	case err != nil:
		return nil, &refusedError{status: http.StatusBadRequest, code: codeBadJSON, message: "the body cannot be read to its end: send it again", err: err}
	case int64(len(body)) > most:
		return nil, tooLarge
	}
	_ = control.SetReadDeadline(time.Time{}) // a writer without deadlines has none to remove
	c.bodyRead = true
	c.held.arrived.shrink(len(body)) // if its length was not known
	return body, nil
}

// decode decodes the body of the request, or a part of it, by calling read.
func (c *call) decode(body []byte, read func() error) error {
	return c.held.decode(c.r.Context(), body, read)
}

// parse decodes the body of the request as an event.
func (c *call) parse(body []byte) (m *events.Message, err error) {
	err = c.decode(body, func() error {
		if m, err = events.Parse(body); err != nil {
			return refusalOfBody(err)
		}
		return nil
	})
	return m, err
}

// patient gives each read of a body a time limit.
type patient struct {
	body    io.Reader
	control *http.ResponseController
	end     time.Time
}

// Read implements [io.Reader].
func (p *patient) Read(b []byte) (int, error) {
	deadline := time.Now().Add(bodyIdle)
	if deadline.After(p.end) {
		deadline = p.end
	}
	_ = p.control.SetReadDeadline(deadline) // a writer without deadlines reads without
	return p.body.Read(b)                   //nolint:wrapcheck // it stands in for the body
}
