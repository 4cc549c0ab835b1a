package provision

import (
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/oneturn/oneturn/internal/catalog"
	"github.com/oneturn/oneturn/internal/tools/target"
	"github.com/oneturn/oneturn/subjects"
)

// What oneturn needs on a server: eight streams, of which five are buckets, and a consumer for each pool and for
// the timers. Each method of Options below makes one of them and explains its settings.

// Plan is everything that oneturn needs on a server, as values. Buckets appear as the
// streams they are made of. Make it with [New].
type Plan struct {
	// Streams in the order they are made. The journal is first: if it is missing while the
	// inbound stream is there, it was lost.
	Streams []jetstream.StreamConfig

	// Consumers in the order they are made, after all streams.
	Consumers []Consumer

	journal, inbound, timers, blobs, dead, limits, workflows string // stream names
	mirror                                                   string // of the read mirror, "" if the plan has none

	api          string        // service that every worker offers
	command      string        // of turnctl, that makes what is missing
	minRetention time.Duration // turn life, event age and margin
}

// Consumer is a durable consumer of a stream.
type Consumer struct {
	Stream string
	Config jetstream.ConsumerConfig
}

// New makes the plan for opts, or reports everything that is wrong with them.
func New(opts Options) (Plan, error) {
	opts, err := opts.withDefaults()
	if err != nil {
		return Plan{}, err
	}
	if err := opts.validate(); err != nil {
		return Plan{}, err
	}
	s := opts.Space
	plan := Plan{
		Streams: []jetstream.StreamConfig{
			opts.journal(), opts.inbound(), opts.timers(), opts.context(), opts.blobs(), opts.dead(), opts.limits(), opts.workflows(),
		},
		journal:      s.TurnsStream(),
		inbound:      s.InStream(),
		timers:       s.TimersStream(),
		blobs:        "OBJ_" + s.BlobsBucket(),
		dead:         s.DeadStream(),
		limits:       "KV_" + s.LimitsBucket(),
		workflows:    s.WorkflowsStream(),
		api:          s.APIName(),
		command:      opts.command(),
		minRetention: MinRetention(opts.MaxTurnLife, opts.MaxEventAge),
	}
	if opts.ReadMirror {
		plan.Streams = append(plan.Streams, opts.readMirror())
		plan.mirror = s.TurnsMirror()
	}
	for _, pool := range opts.Pools {
		plan.Consumers = append(plan.Consumers, Consumer{s.InStream(), opts.consumer(s.WorkerConsumer(pool), s.InFilter(pool))})
	}
	plan.Consumers = append(plan.Consumers, Consumer{s.TimersStream(), opts.consumer(s.TimersConsumer(), s.DueSubjects())})
	return plan, nil
}

// command returns the command that makes what a plan has and the server has not: with the flags without
// which it would make something else.
func (o Options) command() string {
	text := "turnctl provision"
	if prefix := o.Space.Prefix(); prefix != subjects.DefaultPrefix {
		text += " --prefix " + prefix
	}
	if !slices.Equal(o.Pools, []string{subjects.DefaultPool}) {
		text += " --pools " + strings.Join(o.Pools, ",")
	}
	if o.ReadMirror {
		text += " --read-mirror"
	}
	return text
}

// stream is what all streams share. Limits that are not set are written as the server reads
// them back, so that a plan can be compared with what is there.
func (o Options) stream(name, description string, subjects ...string) jetstream.StreamConfig {
	cfg := jetstream.StreamConfig{
		Name:              name,
		Description:       description,
		Subjects:          subjects,
		Discard:           jetstream.DiscardNew,
		MaxConsumers:      -1,
		MaxMsgs:           -1,
		MaxBytes:          -1,
		MaxMsgsPerSubject: -1,
		MaxMsgSize:        -1,
		Duplicates:        DuplicateWindow,
		Replicas:          o.Replicas,
		Storage:           jetstream.FileStorage,
	}
	if o.Memory {
		cfg.Storage = jetstream.MemoryStorage
	}
	return cfg
}

// bucket is a KV bucket with one value a key, as the KV client would make it.
func (o Options) bucket(name, description string, ttl time.Duration) jetstream.StreamConfig {
	cfg := o.stream("KV_"+name, description, "$KV."+name+".>")
	cfg.MaxAge = ttl
	cfg.Duplicates = min(DuplicateWindow, ttl)
	cfg.MaxMsgsPerSubject = 1
	cfg.AllowRollup = true
	cfg.AllowDirect = true
	cfg.DenyDelete = true
	return cfg
}

// journal has no MaxBytes: a full bucket would refuse the end of a turn too (rule 13). The
// live copies leave the server after the store, so no reader sees a claim that lost.
func (o Options) journal() jetstream.StreamConfig {
	cfg := o.bucket(o.Space.TurnsBucket(), "oneturn: journal and event log of all turns", o.Retention)
	cfg.RePublish = &jetstream.RePublish{
		Source:      o.Space.JournalSubject("e.>"),
		Destination: o.Space.EventsPrefix() + ".>",
	}
	return cfg
}

// readMirror is a copy of the journal with the same sequences, which histories are read from. It has one replica: nothing is lost
// with it. It has the limits of the journal, so that it forgets nothing earlier.
func (o Options) readMirror() jetstream.StreamConfig {
	cfg := o.stream(o.Space.TurnsMirror(), "oneturn: copy of the journal, for reads of histories")
	cfg.Mirror = &jetstream.StreamSource{Name: o.Space.TurnsStream()}
	cfg.MaxAge = o.Retention
	cfg.MaxMsgsPerSubject = 1
	cfg.Duplicates = 0
	cfg.Replicas = 1
	cfg.AllowDirect, cfg.MirrorDirect = true, true
	cfg.DenyDelete = true
	if len(o.ReadMirrorTags) > 0 {
		cfg.Placement = &jetstream.Placement{Tags: o.ReadMirrorTags}
	}
	return cfg
}

// inbound is bounded and refuses publishes when it is full: back-pressure instead of loss.
func (o Options) inbound() jetstream.StreamConfig {
	cfg := o.stream(o.Space.InStream(), "oneturn: inbound turns, answers and cancels", o.Space.InSubjects())
	cfg.Retention = jetstream.WorkQueuePolicy
	cfg.MaxBytes = o.InMaxBytes
	cfg.Duplicates = InDuplicateWindow
	return cfg
}

// timers holds schedules, which the server publishes into the same stream when they are due.
func (o Options) timers() jetstream.StreamConfig {
	cfg := o.stream(o.Space.TimersStream(), "oneturn: schedules and what is due", o.Space.TimerSubjects(), o.Space.DueSubjects())
	cfg.Retention = jetstream.WorkQueuePolicy
	cfg.Discard = jetstream.DiscardOld
	cfg.AllowMsgSchedules = true
	cfg.AllowRollup = true // the server turns it on with schedules
	return cfg
}

func (o Options) context() jetstream.StreamConfig {
	return o.bucket(o.Space.ContextBucket(), "oneturn: context variables of chats", o.ContextAge)
}

// blobs outlive the records that name them.
func (o Options) blobs() jetstream.StreamConfig {
	name := o.Space.BlobsBucket()
	cfg := o.stream("OBJ_"+name, "oneturn: payloads too large for a record", "$O."+name+".C.>", "$O."+name+".M.>")
	cfg.MaxAge = o.Retention + blobsMargin
	cfg.MaxBytes = o.BlobsMaxBytes
	cfg.AllowRollup = true
	cfg.AllowDirect = true
	return cfg
}

// dead bounds the dead letters of each tenant and kind, so that the oldest dead letters of a tenant make
// room for its newer ones, and not the dead letters of others.
func (o Options) dead() jetstream.StreamConfig {
	cfg := o.stream(o.Space.DeadStream(), "oneturn: dead letters", o.Space.DeadSubjects())
	cfg.Discard = jetstream.DiscardOld
	cfg.MaxAge = o.DeadAge
	cfg.Duplicates = min(DuplicateWindow, o.DeadAge)
	cfg.MaxBytes = o.DeadMaxBytes
	cfg.MaxMsgsPerSubject = o.deadPerSubject()
	return cfg
}

// deadPerSubject is how many dead letters of a tenant and a kind are kept: an eighth of the stream,
// as far as it is bounded. Two kinds of messages that a tenant publishes, and what is of no known
// kind, have bytes in their letters: together they leave more than half of the stream to others.
func (o Options) deadPerSubject() int64 {
	const part, least = 8, 10
	if o.DeadMaxBytes < 0 {
		return maxDeadPerSubject
	}
	return min(maxDeadPerSubject, max(least, o.DeadMaxBytes/part/DeadLetterBytes))
}

// limits holds when the rates of tools have room again, for as long as the longest of them may take
// to fill up: what is older has no meaning.
func (o Options) limits() jetstream.StreamConfig {
	return o.bucket(o.Space.LimitsBucket(), "oneturn: rates of tools, shared by workers", target.MaxRefill+time.Hour)
}

// workflows holds what workers announce: they renew a record after half of its life. It is small, so that it
// cannot take the space of the journal.
func (o Options) workflows() jetstream.StreamConfig {
	cfg := o.bucket(o.Space.WorkflowsBucket(), "oneturn: workflows that workers have", catalog.TTL)
	cfg.MaxBytes = workflowsMaxBytes
	cfg.MaxMsgSize = 2 * catalog.MaxRecord // with its headers
	return cfg
}

// consumer has no limit of deliveries: on a work queue a message past it would stay for
// ever, unseen. Workers count and dead-letter instead (rule 4).
func (o Options) consumer(name, filter string) jetstream.ConsumerConfig {
	return jetstream.ConsumerConfig{
		Name:          name,
		Durable:       name,
		FilterSubject: filter,
		DeliverPolicy: jetstream.DeliverAllPolicy,
		AckPolicy:     jetstream.AckExplicitPolicy,
		AckWait:       o.AckWait,
		MaxDeliver:    -1,
		MaxAckPending: MaxAckPending,
		MaxWaiting:    MaxWaiting,
	}
}
