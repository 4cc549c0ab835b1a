package handlers

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/subjects"
)

// Bounds of what is put aside. In all it may hold as many bytes as the inbound stream, from which it comes: what is
// beyond that stays there, so that the inbound stream fills and refuses publishes.
const (
	maxAside         = 10_000    // messages of a tenant
	asideShare       = 4         // of the bytes, a tenant may have one part in so many
	defaultAsideSize = 512 << 20 // bytes in all if the inbound stream has no bound
	asideOverhead    = 1 << 10   // bytes of a message besides its data
	asideAgain       = time.Second
	asideIDSize      = 22    // characters of a hash
	maxAsideTenants  = 4_096 // that are remembered between two looks
)

// AsideRoom bounds what is put aside, for each tenant and in all. It counts the schedules in the stream of the timers,
// so that the bound holds for all workers and outlives each of them; between two looks a worker adds what it
// has put aside itself. It is safe for concurrent use.
type AsideRoom struct {
	js    jetstream.JetStream
	space subjects.Space

	mu      sync.Mutex
	tenants map[string]asideUse // by their tokens
}

// asideUse is what was put aside as of a look.
type asideUse struct {
	at         time.Time
	msgs       int
	bytes, all int64 // of the tenant; of the stream
	most       int64 // bytes in all
}

// NewAsideRoom returns the bounds of the stream of the timers.
func NewAsideRoom(js jetstream.JetStream, space subjects.Space) *AsideRoom {
	return &AsideRoom{js: js, space: space, tenants: map[string]asideUse{}}
}

// Take reports whether a message of a tenant with so many bytes of data may be put aside, and counts it. The
// tenant is a token.
func (r *AsideRoom) Take(ctx context.Context, app string, bytes int) (bool, error) {
	r.mu.Lock()
	use, known := r.tenants[app]
	r.mu.Unlock()
	if !known || time.Since(use.at) >= asideAgain {
		var err error
		if use, err = r.look(ctx, app); err != nil {
			return false, err
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if now, known := r.tenants[app]; known && now.at.After(use.at) { // another call has looked since, or has added
		use = now
	}
	size := int64(bytes) + asideOverhead
	fits := use.msgs < maxAside && use.bytes+size <= use.most/asideShare && use.all+size <= use.most
	if fits {
		use.msgs, use.bytes, use.all = use.msgs+1, use.bytes+size, use.all+size
	}
	if len(r.tenants) >= maxAsideTenants {
		clear(r.tenants) // they are looked up again
	}
	r.tenants[app] = use
	return fits, nil
}

// look counts what is put aside of a tenant, and in all.
func (r *AsideRoom) look(ctx context.Context, app string) (asideUse, error) {
	ctx, cancel := context.WithTimeout(ctx, putTimeout)
	defer cancel()
	in, err := r.js.Stream(ctx, r.space.InStream())
	if err != nil {
		return asideUse{}, fmt.Errorf("read the bound of the inbound stream: %w", err)
	}
	use := asideUse{at: time.Now(), most: in.CachedInfo().Config.MaxBytes}
	if use.most <= 0 {
		use.most = defaultAsideSize
	}
	timers, err := asidesOf(ctx, r.js.Conn(), r.space.TimersStream(), r.space.InTimersOfTenant(app))
	if err != nil {
		return asideUse{}, err
	}
	use.all = timers.Bytes
	for subject, n := range timers.Subjects {
		use.msgs += n
		use.bytes += int64(n) * (asideSize(subject) + asideOverhead)
	}
	return use, nil
}

// asideState is what the server says of a stream and of its subjects that match a filter, as far as they fit in
// one reply: far more than a tenant may have.
type asideState struct {
	Bytes    int64          `json:"bytes"`
	Subjects map[string]int `json:"subjects"`
}

func asidesOf(ctx context.Context, nc *nats.Conn, stream, filter string) (asideState, error) {
	reply, err := nc.RequestWithContext(ctx, "$JS.API.STREAM.INFO."+stream, fmt.Appendf(nil, `{"subjects_filter":%q}`, filter))
	if err != nil {
		return asideState{}, fmt.Errorf("count what is put aside: %w", err)
	}
	var info struct {
		State asideState          `json:"state"`
		Error *jetstream.APIError `json:"error"`
	}
	if err := json.Unmarshal(reply.Data, &info); err != nil {
		return asideState{}, fmt.Errorf("count what is put aside: %w", err)
	}
	if info.Error != nil {
		return asideState{}, fmt.Errorf("count what is put aside: %w", info.Error)
	}
	return info.State, nil
}

// asideID is the last token of a schedule: what tells a message from others, and how many bytes of data it has.
func asideID(id string, bytes int) string { return id + "-" + strconv.Itoa(bytes) }

// asideSize reads the bytes of data from the subject of a schedule; 0 if it does not name them.
func asideSize(subject string) int64 {
	id := subject[strings.LastIndexByte(subject, '.')+1:]
	if len(id) <= asideIDSize {
		return 0
	}
	size := strings.TrimPrefix(id[asideIDSize:], "-")
	n, err := strconv.ParseInt(size, 10, 64)
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// mayPutAside reports whether a message may be put aside within the bounds of its tenant and of all. If they
// cannot be read the message is not put aside now. A store that is nearly full changes nothing: what is put
// aside leaves the inbound stream. Expiries have no bound of their own: workers alone send them, one for each
// open question, and that had a schedule before.
func (h *Handlers) mayPutAside(m *Message) (bool, error) {
	in, _ := h.Space.ParseIn(m.Subject)
	if in.Kind == events.KindExpire {
		return true, nil
	}
	if h.AsideRoom == nil {
		return true, nil
	}
	room, err := h.AsideRoom(m.Held, in.App, len(m.Data))
	if err == nil && !room {
		h.often(m, slog.LevelWarn, "too much is put aside: messages that wait are judged at once, or keep their places", "", "seq", m.Lease.Seq)
	}
	return room, err
}
