package provision

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/oneturn/oneturn/internal/defaults"
	"github.com/oneturn/oneturn/subjects"
)

// Options are the input of [New]: plain values with defaults and bounds. docs/operations.md explains how to choose
// them; the flags of `turnctl provision` have the same names.

// Defaults of [Options], and the margin of rule 11.
const (
	DefaultAckWait       = defaults.AckWait
	DefaultRetention     = defaults.Retention
	DefaultMaxTurnLife   = defaults.MaxTurnLife
	DefaultMaxEventAge   = defaults.MaxEventAge
	DefaultDeadAge       = defaults.DeadAge
	DefaultContextAge    = defaults.ContextAge
	DefaultInMaxBytes    = defaults.InMaxBytes
	DefaultDeadMaxBytes  = defaults.DeadMaxBytes
	DefaultBlobsMaxBytes = defaults.BlobsMaxBytes

	// maxDeadPerSubject is how many dead letters of a tenant and a kind are kept at most; the newest
	// are. A smaller DeadMaxBytes makes it fewer.
	maxDeadPerSubject = 500

	// DeadLetterBytes is the size of the largest dead letter: 16 KiB of its message and its headers.
	DeadLetterBytes = 30 << 10

	// RetentionMargin is what the retention has over turn life and event age together.
	RetentionMargin = time.Hour

	// DuplicateWindow is how long the server remembers a Nats-Msg-Id of a stream that only workers publish to:
	// the ids are short. Correctness never depends on it.
	DuplicateWindow = 2 * time.Minute

	// InDuplicateWindow is the one of the inbound stream. The server keeps the ids in memory, also of messages that were
	// acknowledged, and a sender chooses them, up to 64 KB each. So it is as long as the retries of a publish by the
	// NATS client take, two in half a second, and no longer: workers find later repeats.
	InDuplicateWindow = time.Second

	// MaxAckPending is how many messages of one pool may be in the hands of its workers.
	MaxAckPending = 20_000

	// MaxWaiting is how many pulls of the workers of one pool may wait for messages. The server
	// drops any more without a reply. A worker has four or five at most.
	MaxWaiting = 20_000

	// workflowsMaxBytes bounds the bucket of workflows: thousands of records.
	workflowsMaxBytes = 4 << 20

	// blobsMargin is how much longer a payload lives than the record that names it.
	blobsMargin = 24 * time.Hour
)

// Options specify what to provision. Zero fields take the defaults.
type Options struct {
	// Space holds the names. Defaults to the names under [subjects.DefaultPrefix].
	Space subjects.Space

	// Pools get one durable consumer each. Defaults to [subjects.DefaultPool]. A pool that
	// is omitted from a later plan keeps its consumer.
	Pools []string

	// AckWait is how long a worker may be silent before its turns go to another one. Workers
	// read it from the consumer and report every third of it. Shorter finds a dead worker
	// sooner and costs more messages. From 1 s to 10 min. Defaults to 30 s.
	AckWait time.Duration

	// Retention is how long the journal remembers a turn: a duplicate that arrives later is
	// a new turn. It must be at least MaxTurnLife + MaxEventAge + [RetentionMargin].
	// Defaults to 9 days.
	Retention time.Duration

	// MaxTurnLife is how long a turn may stay open, questions to people included. Defaults
	// to 7 days.
	MaxTurnLife time.Duration

	// MaxEventAge is how old an inbound event may be before it ends as too_old. Defaults to
	// 24 h.
	MaxEventAge time.Duration

	// DeadAge is how long dead letters are kept. Defaults to 30 days.
	DeadAge time.Duration

	// ContextAge is how long context variables of a chat outlive their last change. Defaults
	// to 90 days.
	ContextAge time.Duration

	// Replicas is the number of servers that hold each record: 1, 3 or 5. Defaults to 1.
	Replicas int

	// InMaxBytes bounds the inbound stream; a full one refuses publishes with a clear error.
	// Defaults to 512 MiB; -1 for no limit. The server reserves it.
	InMaxBytes int64

	// DeadMaxBytes bounds the dead letters; the oldest make room. The letters of one tenant and kind
	// take an eighth of it at most. Defaults to 128 MiB; -1 for no limit.
	DeadMaxBytes int64

	// BlobsMaxBytes bounds the payloads too large for a record; when it is full, turns with
	// such payloads fail. Defaults to -1, no limit.
	BlobsMaxBytes int64

	// ReadMirror adds a copy of the journal for reads of histories: they do not delay the writes of workers then. The server
	// that has it needs the disk and the memory of the journal once more.
	ReadMirror bool

	// ReadMirrorTags place the copy on servers that have all these tags. It is used when the copy is made. Defaults to any server.
	ReadMirrorTags []string

	// Memory keeps everything in memory: nothing survives the server. For tests and trials.
	Memory bool
}

// withDefaults returns o with every zero field set.
func (o Options) withDefaults() (Options, error) {
	if o.Space == (subjects.Space{}) {
		space, err := subjects.New(subjects.DefaultPrefix)
		if err != nil {
			return o, fmt.Errorf("provision: default names: %w", err)
		}
		o.Space = space
	}
	if len(o.Pools) == 0 {
		o.Pools = []string{subjects.DefaultPool}
	}
	o.AckWait = cmp.Or(o.AckWait, DefaultAckWait)
	o.Retention = cmp.Or(o.Retention, DefaultRetention)
	o.MaxTurnLife = cmp.Or(o.MaxTurnLife, DefaultMaxTurnLife)
	o.MaxEventAge = cmp.Or(o.MaxEventAge, DefaultMaxEventAge)
	o.DeadAge = cmp.Or(o.DeadAge, DefaultDeadAge)
	o.ContextAge = cmp.Or(o.ContextAge, DefaultContextAge)
	o.Replicas = cmp.Or(o.Replicas, 1)
	o.InMaxBytes = cmp.Or(o.InMaxBytes, DefaultInMaxBytes)
	o.DeadMaxBytes = cmp.Or(o.DeadMaxBytes, DefaultDeadMaxBytes)
	o.BlobsMaxBytes = cmp.Or(o.BlobsMaxBytes, DefaultBlobsMaxBytes)
	return o, nil
}

// MinRetention is the shortest retention that rule 11 allows for a turn life and event age.
func MinRetention(maxTurnLife, maxEventAge time.Duration) time.Duration {
	return maxTurnLife + maxEventAge + RetentionMargin
}

// validate reports everything that is wrong with o.
func (o Options) validate() error {
	const maxAckWait, maxAge, minBytes = 10 * time.Minute, 10 * 365 * 24 * time.Hour, 1 << 20
	var errs []error
	for _, d := range []struct {
		flag     string
		value    time.Duration
		min, max time.Duration
	}{
		{"--ack-wait", o.AckWait, time.Second, maxAckWait},
		{"--max-turn-life", o.MaxTurnLife, time.Second, maxAge},
		{"--max-event-age", o.MaxEventAge, time.Second, maxAge},
		{"--retention", o.Retention, time.Second, maxAge},
		{"--dead-age", o.DeadAge, time.Minute, maxAge},
		{"--context-age", o.ContextAge, time.Minute, maxAge},
	} {
		if d.value < d.min || d.value > d.max {
			errs = append(errs, fmt.Errorf("provision: %s %s is outside %s to %s", d.flag, d.value, d.min, d.max))
		}
	}
	if least := MinRetention(o.MaxTurnLife, o.MaxEventAge); len(errs) == 0 && o.Retention < least {
		errs = append(errs, fmt.Errorf("provision: --retention %s is shorter than turn life %s + event age %s + %s, "+
			"so a late duplicate could run a turn again; the least is --retention %s",
			o.Retention, o.MaxTurnLife, o.MaxEventAge, RetentionMargin, least))
	}
	for _, pool := range o.Pools {
		if err := subjects.CheckPool(pool); err != nil {
			errs = append(errs, fmt.Errorf("provision: --pools: %w", err))
		}
	}
	if o.Replicas != 1 && o.Replicas != 3 && o.Replicas != 5 {
		errs = append(errs, fmt.Errorf("provision: --replicas %d is not 1, 3 or 5", o.Replicas))
	}
	if len(o.ReadMirrorTags) > 0 && !o.ReadMirror {
		errs = append(errs, errors.New("provision: --read-mirror-tags is set without --read-mirror: set both"))
	}
	for _, b := range []struct {
		flag  string
		value int64
	}{{"--in-max-bytes", o.InMaxBytes}, {"--dead-max-bytes", o.DeadMaxBytes}, {"--blobs-max-bytes", o.BlobsMaxBytes}} {
		if b.value != -1 && b.value < minBytes {
			errs = append(errs, fmt.Errorf("provision: %s %d is neither -1 (no limit) nor at least %d bytes", b.flag, b.value, minBytes))
		}
	}
	return errors.Join(errs...)
}
