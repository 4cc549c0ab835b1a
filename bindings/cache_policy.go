package bindings

import (
	"slices"
	"strings"
	"time"
)

// Scope is who shares results in the cache. Tenants share results only in the last scope.
type Scope string

// Scopes of the cache.
const (
	ScopeUser   Scope = "user"   // one user; a turn that names none is not cached
	ScopeChat   Scope = "chat"   // one chat; the default
	ScopeTenant Scope = "tenant" // one tenant
	ScopeGlobal Scope = "global" // all tenants: for what depends on the arguments alone
)

func scopes() []string {
	return []string{string(ScopeUser), string(ScopeChat), string(ScopeTenant), string(ScopeGlobal)}
}

// Cache is how long a result may be used again. The zero value is not at all. Only tools whose
// effect is none may have one.
type Cache struct {
	TTL   time.Duration
	Scope Scope
}

// cache reads a duration, or {ttl, scope}. An invalid one disables the cache alone.
func (o *entryReader) cache(n *node) Cache {
	c := Cache{Scope: ScopeChat}
	ttl := n
	bad := func(at *node, format string, args ...any) Cache {
		o.errorf(at.at(o.file), "bad_cache", "write for example cache: {ttl: 5m, scope: chat}", "the results of "+o.what+" are not kept: "+format, args...)
		return Cache{}
	}
	if n.is(mapNode) {
		if o.strict(n, o.file, "cache") != nil {
			return Cache{} // it may be the scope
		}
		if s := n.get("scope"); !s.absent() {
			c.Scope = Scope(s.str())
			if known := scopes(); !slices.Contains(known, s.str()) {
				return bad(s, "invalid scope %s: must be one of %s", s.shown(), strings.Join(known, ", "))
			}
		}
		ttl = n.get("ttl")
	}
	if !ttl.is(textNode) && !ttl.is(numberNode) {
		return bad(n, "it has no ttl")
	}
	d, err := duration(ttl.text)
	if err != nil {
		return bad(ttl, "ttl: %v", err)
	}
	c.TTL = d
	return c
}
