package catalog

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/oneturn/oneturn/internal/jsapi"
	"github.com/oneturn/oneturn/subjects"
)

// Errors of a read or write of the bucket.
var (
	// ErrMissing: the server was provisioned before there was a list of workflows.
	ErrMissing = errors.New("is missing")

	// errTaken: another worker has written the record in between.
	errTaken = errors.New("another worker has written in between")
)

// attempts is how often a read is repeated that shows less than the leader of the bucket has.
const attempts = 3

// store is the bucket, in tests a map.
type store interface {
	// read returns all records, in the order of their writes.
	read(ctx context.Context) (contents, error)
	// write replaces the record with a sequence, 0 for none. It fails with errTaken if there is another one.
	write(ctx context.Context, subject string, data []byte, seq uint64) error
}

// contents is all that the bucket holds at a time of the server's clock.
type contents struct {
	now    time.Time
	stored []entry
}

// entry is one record as it is stored. One that was deleted has no data.
type entry struct {
	subject string
	seq     uint64
	time    time.Time
	data    []byte
}

// bucket is the [store] on a server.
type bucket struct {
	js    jetstream.JetStream
	space subjects.Space
}

// read reads from any replica. One that lags is noticed by the state that the leader has.
func (b *bucket) read(ctx context.Context) (contents, error) {
	for attempt := 1; ; attempt++ {
		info, err := jsapi.Info(ctx, b.js.Conn(), b.space.WorkflowsStream(), "", 0)
		if jsapi.Code(err) == jetstream.JSErrCodeStreamNotFound {
			return contents{}, fmt.Errorf("bucket %s %w: turnctl provision makes it", b.space.WorkflowsBucket(), ErrMissing)
		}
		if err != nil {
			return contents{}, err
		}
		found := contents{now: info.Now}
		last := uint64(0)
		err = jsapi.Each(ctx, b.js.Conn(), b.space.WorkflowsStream(), b.space.WorkflowSubjects(), func(m *jetstream.RawStreamMsg) {
			e := entry{subject: m.Subject, seq: m.Sequence, time: m.Time}
			if m.Header.Get("KV-Operation") == "" {
				e.data = m.Data
			}
			found.stored, last = append(found.stored, e), m.Sequence
		})
		if err != nil {
			return contents{}, unanswered(err, "$JS.API.DIRECT.GET."+b.space.WorkflowsStream())
		}
		complete := uint64(len(found.stored)) >= info.State.Msgs && (last >= info.State.LastSeq || info.State.Msgs == 0)
		if complete || attempt == attempts {
			return found, nil
		}
	}
}

// write implements [store].
func (b *bucket) write(ctx context.Context, subject string, data []byte, seq uint64) error {
	ctx, cancel := context.WithTimeout(ctx, jsapi.Timeout)
	defer cancel()
	_, err := b.js.Publish(ctx, subject, data, jetstream.WithExpectLastSequencePerSubject(seq))
	switch code := jsapi.Code(err); {
	case code == jetstream.JSErrCodeStreamWrongLastSequence, code == jetstream.JSErrCodeStreamWrongLastSequenceConstant:
		return errTaken
	case err != nil:
		return unanswered(fmt.Errorf("write to bucket %s: %w", b.space.WorkflowsBucket(), err), b.space.WorkflowSubjects())
	}
	return nil
}

// unanswered adds to an error the right that a request without an answer needs: the server does not answer one that it denies.
func unanswered(err error, right string) error {
	if !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return fmt.Errorf("%w: does the server deny this user to publish to %s? turnctl nats-config prints the rights of each role", err, right)
}

// Requests returns what the subjects of all requests for the list begin with, by which a worker distinguishes denials of them from
// others.
func Requests(space subjects.Space) []string {
	return []string{strings.TrimSuffix(space.WorkflowSubjects(), ">"), "$JS.API.DIRECT.GET." + space.WorkflowsStream()}
}
