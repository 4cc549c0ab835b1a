package natstool

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/tools/target"
)

// Which subjects may be called: Subjects keeps where each service was found first, locate chooses among the
// subjects that its instances name, allows and forbidden are the rules.

// Subjects remembers at which subject each service was found first. Tools that share one keep to
// it, also those that are made again after a change of manifests. The zero value is empty; it is
// safe for concurrent use. It holds one entry for each service that manifests have named.
type Subjects struct {
	mu    sync.Mutex
	found map[string]string
}

// settle returns the first of the candidates that may be called: any of them the first time, later
// only the one that was chosen then. It returns that one in either case.
func (s *Subjects) settle(service string, candidates []string) (subject string, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known, found := s.found[service]; found {
		return known, slices.Contains(candidates, known)
	}
	if len(candidates) == 0 {
		return "", false
	}
	if s.found == nil {
		s.found = map[string]string{}
	}
	s.found[service] = candidates[0]
	return candidates[0], true
}

// serviceName is a name as package micro has it.
var serviceName = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// service returns the name that is asked for. Only services of that name may hear the question and
// so answer it. A manifest that names only a subject means the service that the subject lies below.
func service(t *target.NATS) string {
	first, _, _ := strings.Cut(t.Subject, ".")
	name := cmp.Or(t.Service, first)
	if !serviceName.MatchString(name) {
		return ""
	}
	return name
}

// at identifies, in [Subjects], what the manifest has found by its names.
func (t *Tool) at() string {
	return fmt.Sprintf("%q", append([]string{t.t.Service, t.t.Endpoint}, t.t.Subjects...))
}

// locate chooses the subject to call among those that the instances name, newest first.
func (t *Tool) locate(op string, found []instance) (string, error) {
	if t.t.Subject != "" {
		return t.t.Subject, nil // the instances were chosen by it
	}
	var named, allowed []string
	for _, i := range found {
		if s := i.endpoint.Subject; !slices.Contains(named, s) {
			named = append(named, s)
			if t.allows(s) {
				allowed = append(allowed, s)
			}
		}
	}
	subject, ok := t.o.Subjects.settle(t.at(), allowed)
	t.differ(subject, named)
	switch {
	case ok:
		return subject, nil
	case subject != "":
		return "", failure(op, events.CodeToolError, fmt.Sprintf(
			"the service was at subject %q and now names %.200q: it is not called there; if the move is intended, restart the worker", subject, named[0]))
	case t.forbidden(named[0]):
		return "", failure(op, events.CodeToolError, fmt.Sprintf(
			"the service names subject %.200q, where no tool may be: name the subject to call in the manifest", named[0]))
	}
	return "", failure(op, events.CodeToolError, fmt.Sprintf(
		"the service names subject %.200q, which is not below its name %q: if that is intended, add it to `subjects` in the manifest", named[0], t.t.Service))
}

// allows reports whether a service may be called at a subject that it names: one below its own
// name, or one that the manifest lists, so that a service cannot receive the calls of another, nor
// have the worker publish to the server or the product with the worker's rights.
func (t *Tool) allows(subject string) bool {
	if t.forbidden(subject) {
		return false
	}
	return below(subject, t.t.Service) || slices.ContainsFunc(t.t.Subjects, func(pattern string) bool { return matches(pattern, subject) })
}

// forbidden reports whether a subject is the server's, the product's, an inbox or none.
func (t *Tool) forbidden(subject string) bool {
	return !plainSubject(subject) || strings.HasPrefix(subject, "$") || strings.HasPrefix(subject, "_") || t.o.MayReply(subject) || t.reserved(subject)
}

// reserved reports whether a subject is one of the product: a tool there could publish turns and
// answer questions with what a model puts out.
func (t *Tool) reserved(subject string) bool {
	return slices.ContainsFunc(t.o.Reserved, func(prefix string) bool { return below(subject, prefix) })
}

func below(subject, name string) bool { return strings.HasPrefix(subject+".", name+".") }

// matches reports whether a plain subject is one of a pattern with the wildcards of NATS.
func matches(pattern, subject string) bool {
	tokens := strings.Split(subject, ".")
	for i, p := range strings.Split(pattern, ".") {
		switch {
		case i == len(tokens):
			return false
		case p == ">":
			return true
		case p != "*" && p != tokens[i]:
			return false
		}
	}
	return strings.Count(pattern, ".") == strings.Count(subject, ".")
}

// differ warns, once for each list, of instances that name different subjects. Discovery runs one
// at a time.
func (t *Tool) differ(subject string, named []string) {
	slices.Sort(named[min(1, len(named)):])
	list := fmt.Sprintf("%.200q", named[:min(len(named), 8)])
	if len(named) < 2 && (subject == "" || named[0] == subject) || list == t.differing {
		return
	}
	t.differing = list
	t.o.Logger.Warn("instances of a NATS service name other subjects than the one that is called",
		"service", t.name(), "called", subject, "named", list, "subjects", len(named))
}
