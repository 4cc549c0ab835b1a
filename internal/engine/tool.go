package engine

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"time"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/bindings/model"
	"github.com/oneturn/oneturn/internal/guards"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/internal/tools/target"
)

// Tool is what a call runs, and how.
type Tool struct {
	// ID is what limits and cache know the tool by: tools of different workflows differ in it
	// unless they are the same. "" = the name of the call.
	ID      string
	Version string // changes when what is called does: results of another version are not reused

	Invoker     tools.Invoker
	Input       *model.Model // completes, coerces and checks the arguments; nil takes any
	Unplaced    []string     // fields of the input that no parameter of the tool takes, so that they are always missing
	Output      *model.Value // checks the result; nil takes any
	MaxAttempts int          // of a tool that fails with a retryable error; 0 = 1
	Timeout     time.Duration
	Cache       bindings.Cache // zero: results are not reused
	Limits      target.Limits  // zero: none
	Guards      []guards.Guard // asked in this order
}

// CacheKey identifies a result: a hash of tool, version, scope and the arguments byte for byte.
type CacheKey [sha256.Size]byte

// Cache keeps results of calls for others with the same arguments. It is safe for concurrent use,
// bounded, and may forget any result. The bytes of a value are never changed.
type Cache interface {
	Get(key CacheKey) (value json.RawMessage, ok bool)
	Put(key CacheKey, value json.RawMessage, ttl time.Duration)
}

// Limiter makes calls wait until they may begin. It is safe for concurrent use.
type Limiter interface {
	// Wait returns once a call of the tool (its ID) for a tenant may begin. Release is called
	// once when the call has ended; it is nil if there is nothing to release. An error is the
	// error of ctx, or, with a code, the end of the call: it would have to wait for too long.
	Wait(ctx context.Context, tool, tenant string, limits target.Limits) (release func(), err error)
}
