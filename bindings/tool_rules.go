package bindings

import (
	"cmp"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/oneturn/oneturn/internal/tools/target"
)

// Bounds of what rules of a tool may say.
const (
	maxCalls  = 1_000_000
	maxOutput = 64 << 20 // bytes
	maxGuards = 50
)

// rules reads what is checked and bounded around a tool, whatever its kind.
func (o *entryReader) rules(n *node, t *toolEntry) {
	o.schemas(n, t)
	if c := n.get("cache"); !c.absent() {
		t.cache, t.cacheAt = o.cache(c), c.at(o.file)
	}
	if l := n.get("limits"); !l.absent() {
		t.limits, t.shared = o.limits(l), "" // it is counted on its own
	}
	if g := n.get("guards"); !g.absent() {
		t.guards = append(slices.Clip(t.guards), o.guards(g)...) // the guards of a shared tool stay
	}
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
		o.strict(n, o.file, "cache")
		if s := n.get("scope"); !s.absent() {
			c.Scope = Scope(s.str())
			if known := scopes(); !slices.Contains(known, s.str()) {
				return bad(s, "scope is %s, and must be one of %s", s.shown(), strings.Join(known, ", "))
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

// limits reads {concurrency, rate, burst, output, tenant}.
func (o *entryReader) limits(n *node) target.Limits {
	if n = o.object(n, "limits", "limits: {concurrency: 4, rate: 10/s}"); n == nil {
		return target.Limits{}
	}
	l := target.Limits{Tool: o.limit(n)}
	if tenant := n.get("tenant"); !tenant.absent() {
		if tenant = o.object(tenant, "tenant", "tenant: {concurrency: 2, rate: 100/m}"); tenant != nil {
			l.Tenant = o.limit(tenant)
		}
	}
	if v := n.get("output"); !v.absent() {
		l.Output = o.size(v, "output", maxOutput)
	}
	return l
}

func (o *entryReader) limit(n *node) target.Limit {
	l := target.Limit{Concurrency: o.count(n, "concurrency", maxCalls)}
	if r := n.get("rate"); !r.absent() {
		rate, ok := parseRate(r.str())
		if !ok {
			o.refusef(r.at(o.file), "bad_rate", "write for example rate: 10/s, 100/m or 5/10s (at most 24h)", "invalid rate %s", quoted(r.text))
		}
		l.Rate = rate
	}
	l.Rate.Burst = o.count(n, "burst", maxCalls)
	if l.Rate.Burst > 0 && n.get("rate").absent() {
		o.refusef(n.get("burst").at(o.file), "bad_rate", "add for example rate: 10/s", "burst requires a rate")
		return l
	}
	if err := l.Rate.Check(); err != nil {
		o.refusef(n.get("rate").at(o.file), "bad_rate", "write a smaller burst, for example burst: 10", "%s", err)
	}
	return l
}

// parseRate reads 10/s, 100/m or 5/10s.
func parseRate(text string) (target.Rate, bool) {
	m := regexp.MustCompile(`^([0-9]+)\s*/\s*([0-9]*)(ms|s|m|h)$`).FindStringSubmatch(text)
	if m == nil {
		return target.Rate{}, false
	}
	calls, err := strconv.Atoi(m[1])
	per, perErr := time.ParseDuration(cmp.Or(m[2], "1") + m[3])
	if err != nil || perErr != nil || calls < 1 || calls > maxCalls || per <= 0 || per > 24*time.Hour {
		return target.Rate{}, false
	}
	return target.Rate{Calls: calls, Per: per}, true
}

// size reads a number of bytes, with or without a unit.
func (o *entryReader) size(n *node, key string, most int) int {
	units := map[string]float64{
		"": 1, "b": 1, "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30, "kb": 1e3, "mb": 1e6, "gb": 1e9,
	}
	bytes := -1.0
	if m := regexp.MustCompile(`^([0-9]{1,12}(?:\.[0-9]{1,6})?)\s*([A-Za-z]*)$`).FindStringSubmatch(strings.TrimSpace(n.text)); m != nil && (n.is(textNode) || n.is(numberNode)) {
		if unit, ok := units[strings.ToLower(m[2])]; ok {
			number, _ := strconv.ParseFloat(m[1], 64)
			bytes = math.Round(number * unit)
		}
	}
	if bytes < 1 || bytes > float64(most) {
		o.refusef(n.at(o.file), "bad_size", "write for example "+key+": 64KiB", "invalid %s %s: it must be from 1 byte to %d MiB", key, quoted(n.text), most>>20)
		return 0
	}
	return int(bytes)
}
