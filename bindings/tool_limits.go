package bindings

import (
	"cmp"
	"regexp"
	"strconv"
	"time"

	"github.com/oneturn/oneturn/internal/tools/target"
)

// Bounds of the values that rules of a tool may have.
const (
	maxCalls  = 1_000_000
	maxOutput = 64 << 20 // bytes
	maxGuards = 50
)

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
