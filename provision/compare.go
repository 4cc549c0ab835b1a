package provision

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Two tables list the settings of streams and consumers that a plan decides, with the rule of each: what a
// difference means, and whether changing it loses records. compare and merge walk the tables.

// rule is what a difference in one setting means.
type rule int

const (
	tunable  rule = iota // either value keeps the promise: Apply changes it, Check mentions it
	promised             // the promise needs the planned value: Apply changes it, Check complains
	fixed                // never changed: the stream is another one or was made for something else
	initial              // decided when it is made: Apply leaves it, Check mentions it
)

// setting is one compared setting of a stream or consumer config C.
type setting[C any] struct {
	name  string
	rule  rule
	field func(*C) any // pointer to the field

	// loses reports whether the change would lose records or safety; nil means never.
	loses func(have, want *C) bool
}

// streamSettings are all settings that a plan decides. Everything else (description,
// placement, compression, metadata, sources) belongs to the operator and is kept.
var streamSettings = []setting[jetstream.StreamConfig]{ //nolint:gochecknoglobals // a read-only table
	{"storage", fixed, func(c *jetstream.StreamConfig) any { return &c.Storage }, nil},
	{"retention", fixed, func(c *jetstream.StreamConfig) any { return &c.Retention }, nil},
	{"subjects", promised, func(c *jetstream.StreamConfig) any { return &c.Subjects }, dropsSubject},
	{"replicas", tunable, func(c *jetstream.StreamConfig) any { return &c.Replicas }, func(have, want *jetstream.StreamConfig) bool {
		return want.Replicas < have.Replicas
	}},
	{"max_age", tunable, func(c *jetstream.StreamConfig) any { return &c.MaxAge }, func(have, want *jetstream.StreamConfig) bool {
		return lower(int64(have.MaxAge), int64(want.MaxAge))
	}},
	{"max_bytes", tunable, func(c *jetstream.StreamConfig) any { return &c.MaxBytes }, func(have, want *jetstream.StreamConfig) bool {
		return want.Discard == jetstream.DiscardOld && lower(have.MaxBytes, want.MaxBytes)
	}},
	{"max_msgs", promised, func(c *jetstream.StreamConfig) any { return &c.MaxMsgs }, func(have, want *jetstream.StreamConfig) bool {
		return lower(have.MaxMsgs, want.MaxMsgs)
	}},
	{"max_msgs_per_subject", promised, func(c *jetstream.StreamConfig) any { return &c.MaxMsgsPerSubject }, func(have, want *jetstream.StreamConfig) bool {
		// Of dead letters, the only stream that drops old messages by subject, no number was promised.
		return lower(have.MaxMsgsPerSubject, want.MaxMsgsPerSubject) && want.Discard != jetstream.DiscardOld
	}},
	{"max_msg_size", tunable, func(c *jetstream.StreamConfig) any { return &c.MaxMsgSize }, nil},
	{"discard", promised, func(c *jetstream.StreamConfig) any { return &c.Discard }, nil},
	{"duplicate_window", tunable, func(c *jetstream.StreamConfig) any { return &c.Duplicates }, nil},
	{"republish", promised, func(c *jetstream.StreamConfig) any { return &c.RePublish }, nil},
	{"allow_rollup_hdrs", promised, func(c *jetstream.StreamConfig) any { return &c.AllowRollup }, nil},
	{"mirror", fixed, func(c *jetstream.StreamConfig) any { return &c.Mirror }, nil},
	{"mirror_direct", tunable, func(c *jetstream.StreamConfig) any { return &c.MirrorDirect }, nil},
	{"allow_direct", promised, func(c *jetstream.StreamConfig) any { return &c.AllowDirect }, nil},
	{"no_ack", promised, func(c *jetstream.StreamConfig) any { return &c.NoAck }, nil},
	{"subject_transform", promised, func(c *jetstream.StreamConfig) any { return &c.SubjectTransform }, nil},
	{"subject_delete_marker_ttl", promised, func(c *jetstream.StreamConfig) any { return &c.SubjectDeleteMarkerTTL }, nil},
	{"allow_msg_schedules", promised, func(c *jetstream.StreamConfig) any { return &c.AllowMsgSchedules }, nil},
	{"deny_delete", fixed, func(c *jetstream.StreamConfig) any { return &c.DenyDelete }, nil},
}

var consumerSettings = []setting[jetstream.ConsumerConfig]{ //nolint:gochecknoglobals // a read-only table
	{"filter_subject", fixed, func(c *jetstream.ConsumerConfig) any { return &c.FilterSubject }, nil},
	{"filter_subjects", fixed, func(c *jetstream.ConsumerConfig) any { return &c.FilterSubjects }, nil},
	{"deliver_policy", fixed, func(c *jetstream.ConsumerConfig) any { return &c.DeliverPolicy }, nil},
	{"deliver_subject", fixed, func(c *jetstream.ConsumerConfig) any { return &c.DeliverSubject }, nil},
	{"ack_policy", fixed, func(c *jetstream.ConsumerConfig) any { return &c.AckPolicy }, nil},
	// Lowering it is refused while workers run, see readState.
	{"ack_wait", tunable, func(c *jetstream.ConsumerConfig) any { return &c.AckWait }, nil},
	{"max_deliver", promised, func(c *jetstream.ConsumerConfig) any { return &c.MaxDeliver }, nil},
	{"backoff", promised, func(c *jetstream.ConsumerConfig) any { return &c.BackOff }, nil},
	{"max_ack_pending", tunable, func(c *jetstream.ConsumerConfig) any { return &c.MaxAckPending }, nil},
	{"max_waiting", initial, func(c *jetstream.ConsumerConfig) any { return &c.MaxWaiting }, nil},
	{"max_batch", promised, func(c *jetstream.ConsumerConfig) any { return &c.MaxRequestBatch }, nil},
	{"max_expires", promised, func(c *jetstream.ConsumerConfig) any { return &c.MaxRequestExpires }, nil},
	{"max_bytes", promised, func(c *jetstream.ConsumerConfig) any { return &c.MaxRequestMaxBytes }, nil},
	{"inactive_threshold", promised, func(c *jetstream.ConsumerConfig) any { return &c.InactiveThreshold }, nil},
	{"replay_policy", fixed, func(c *jetstream.ConsumerConfig) any { return &c.ReplayPolicy }, nil},
	{"mem_storage", fixed, func(c *jetstream.ConsumerConfig) any { return &c.MemoryStorage }, nil},
	{"headers_only", promised, func(c *jetstream.ConsumerConfig) any { return &c.HeadersOnly }, nil},
}

// difference is one setting that is not as planned.
type difference struct {
	setting    string
	rule       rule
	have, want string
	refused    bool   // Apply must not change it
	why        string // and the way out, if there is a better one than to change it by hand
}

// String shows the change, for example "ack_wait 30s → 1m0s".
func (d difference) String() string { return d.setting + " " + d.have + " → " + d.want }

// compare returns the differences of have and want, in the order of the table.
func compare[C any](table []setting[C], have, want *C) []difference {
	var diffs []difference
	for _, s := range table {
		h, w := s.field(have), s.field(want)
		if reflect.DeepEqual(h, w) || empty(h) && empty(w) {
			continue
		}
		diffs = append(diffs, difference{
			setting: s.name, rule: s.rule, have: show(h), want: show(w),
			refused: s.rule == fixed || s.loses != nil && s.loses(have, want),
		})
	}
	return diffs
}

// merge returns have with every planned setting of want that can be changed.
func merge[C any](table []setting[C], have, want C) C {
	for _, s := range table {
		if s.rule == initial {
			continue
		}
		reflect.ValueOf(s.field(&have)).Elem().Set(reflect.ValueOf(s.field(&want)).Elem())
	}
	return have
}

// empty reports whether a field is an empty or nil list: the two mean the same.
func empty(field any) bool {
	v := reflect.ValueOf(field).Elem()
	return v.Kind() == reflect.Slice && v.Len() == 0
}

// show prints the value of a field for people.
func show(field any) string {
	switch v := field.(type) {
	case **jetstream.SubjectTransformConfig:
		if *v == nil {
			return "none"
		}
		return (*v).Source + " to " + (*v).Destination
	case **jetstream.RePublish:
		if *v == nil {
			return "none"
		}
		return (*v).Source + " to " + (*v).Destination
	case **jetstream.StreamSource:
		if *v == nil {
			return "none"
		}
		return (*v).Name
	case *[]string:
		return "[" + strings.Join(*v, " ") + "]"
	case *time.Duration:
		if *v == 0 {
			return "no limit"
		}
		return v.String()
	default:
		return fmt.Sprint(reflect.ValueOf(field).Elem().Interface())
	}
}

// lower reports whether the limit want is tighter than have; zero and less mean no limit.
func lower(have, want int64) bool { return want > 0 && (have <= 0 || want < have) }

// dropsSubject reports whether a subject of have is missing in want.
func dropsSubject(have, want *jetstream.StreamConfig) bool {
	return slices.ContainsFunc(have.Subjects, func(s string) bool { return !slices.Contains(want.Subjects, s) })
}
