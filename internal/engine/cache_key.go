package engine

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/internal/guards"
)

// cacheKey returns the key of the call's result, false if its scope is not known. The arguments count
// byte for byte, as they came: another spelling is another call. Callers that the guards of the tool
// distinguish do not share results, because a hit asks no guard.
func (p *pipeline) cacheKey() (CacheKey, bool) {
	turn := &p.call.Turn
	parts := [...]string{p.id(), p.inv.Tool.Version, string(p.inv.Tool.Cache.Scope), "", ""}
	switch p.inv.Tool.Cache.Scope {
	case bindings.ScopeGlobal:
	case bindings.ScopeTenant:
		parts[3] = turn.App
	case bindings.ScopeUser:
		if p.call.UserID == "" {
			return CacheKey{}, false
		}
		parts[3], parts[4] = turn.App, p.call.UserID
	default:
		parts[3], parts[4] = turn.App, turn.Chat
	}
	if p.call.Program { // the form of its result may differ
		parts[2] += " program"
	}
	args, err := p.inv.Call.EncodedArgs()
	if err != nil {
		return CacheKey{}, false
	}
	h, key := sha256.New(), CacheKey{}
	for _, part := range append(parts[:], guards.CallerKeys(p.inv.Tool.Guards, p.call)...) {
		h.Write(binary.BigEndian.AppendUint64(key[:0], uint64(len(part)))) // no part runs into the next
		h.Write([]byte(part))
	}
	h.Write(args)
	h.Sum(key[:0])
	return key, true
}

// id is the name that limits and cache know the tool by.
func (p *pipeline) id() string {
	if p.inv.Tool.ID != "" {
		return p.inv.Tool.ID
	}
	return p.call.Name
}
