package config

import (
	"reflect"
	"slices"
	"strings"

	"github.com/oneturn/oneturn/internal/nearest"
)

// prefix begins the names of all variables.
const prefix = "ONETURN_"

// otherVariables lists variables without the prefix that are not in the settings of this package: settings of
// single commands of publisher and turnctl, and variables of builds for tests.
//
//nolint:gochecknoglobals // a read-only list
var otherVariables = []string{
	"AGENT", "APP", "CHAT", "COUNT", "DEEP", "FINISH_REASON", "ID", "JSONL", "LIVE", "NO_MSG_ID", "REASON", "REPEAT", "RUN", "SEQUENCE", "SNAPSHOT", "STRICT", "TOOL_CALL_ID", "TRACE", "TURN", "USER", "VERBOSE", "WORKFLOW",
	"FAILPOINTS", "FAILPOINT_LOG", "MUTANT", "TEST_PRIVATE", "DEMO_TEST_ROLE",
}

// UnknownVariable is a variable with the prefix ONETURN_ that sets nothing.
type UnknownVariable struct {
	Name  string
	Meant string // the variable that was probably meant, "" if none is similar
}

// UnknownVariables returns the variables of an environment, as [os.Environ] gives it, that begin with ONETURN_
// and set nothing; an empty one counts as not set. Meant is a setting of cfgs, pointers to the settings of the command that runs, if one is
// similar, else one of another command. Variables that --tool-env passes to tools are known, and so are
// passwords that a file with accounts names.
func UnknownVariables(environ []string, cfgs ...any) []UnknownVariable {
	var names, passed []string
	for _, cfg := range cfgs {
		v, err := structOf(cfg)
		if err != nil {
			continue
		}
		names = append(names, namesOf(v)...)
		for _, f := range fieldsOf(v) {
			if list, ok := reflect.TypeAssert[[]string](f.value); ok && f.flag == "tool-env" {
				passed = append(passed, list...)
			}
		}
	}
	shared := slices.Clone(names)
	for _, other := range []any{Worker{}, Gateway{}, Publisher{}, Turnctl{}, Accounts{}, Provision{}} {
		shared = append(shared, namesOf(reflect.ValueOf(other))...)
	}
	var unknown []UnknownVariable
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		short, ours := strings.CutPrefix(name, prefix)
		if !ours || value == "" || slices.Contains(shared, short) || matches(name, passed) {
			continue
		}
		meant := closestVariable(short, names)
		if meant == "" && (slices.Contains(otherVariables, short) || strings.HasSuffix(short, "_PASSWORD")) {
			continue
		}
		if meant == "" {
			meant = closestVariable(short, shared)
		}
		if meant != "" {
			meant = prefix + meant
		}
		unknown = append(unknown, UnknownVariable{name, meant})
	}
	slices.SortFunc(unknown, func(a, b UnknownVariable) int { return strings.Compare(a.Name, b.Name) })
	return unknown
}

// matches reports whether a name is in a list of names, and of prefixes with a star.
func matches(name string, list []string) bool {
	return slices.ContainsFunc(list, func(pattern string) bool {
		begin, star := strings.CutSuffix(pattern, "*")
		return name == pattern || star && strings.HasPrefix(name, begin)
	})
}

// namesOf lists the variables of a settings struct, without the prefix.
func namesOf(cfg reflect.Value) []string {
	fields := fieldsOf(cfg)
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = strings.TrimPrefix(f.env(), prefix)
	}
	return names
}

// closestVariable returns the variable that word was probably meant to be, or "".
func closestVariable(word string, names []string) string {
	return nearest.Of(word, names, nearest.Rule{Edits: func(word, _ string) int { return max(1, len(word)/5) }}) //nolint:mnd // a fifth of the letters
}

// closestSetting returns the setting that word was probably meant to be, or "". A setting means itself.
func closestSetting(word string, settings []string) string {
	return nearest.Of(word, settings, nearest.Rule{
		Edits: func(word, _ string) int { return len(word)/3 + 1 },
	})
}
