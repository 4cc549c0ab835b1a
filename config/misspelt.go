package config

import (
	"reflect"
	"slices"
	"strings"

	"github.com/oneturn/oneturn/internal/nearest"
)

// prefix begins the names of all variables.
const prefix = "ONETURN_"

// Misspelt returns the variables of an environment, as [os.Environ] gives it, that set nothing and are
// nearly a setting of cfg, a pointer to a settings struct, and that setting: "ONETURN_WORKFLOW" →
// "ONETURN_WORKFLOWS". Other variables with the prefix are left alone: they may belong to tools.
func Misspelt(environ []string, cfg any) map[string]string {
	v, err := structOf(cfg)
	if err != nil {
		return nil
	}
	names := namesOf(v)
	known := slices.Clone(names)
	for _, other := range []any{Worker{}, Publisher{}, Turnctl{}, Accounts{}, Provision{}} {
		known = append(known, namesOf(reflect.ValueOf(other))...)
	}
	found := map[string]string{}
	for _, entry := range environ {
		name, _, _ := strings.Cut(entry, "=")
		short, ours := strings.CutPrefix(name, prefix)
		if !ours || slices.Contains(known, short) {
			continue
		}
		if meant := nearest.Of(short, names, nearest.Rule{Edits: func(word, _ string) int { return max(1, len(word)/5) }}); meant != "" { //nolint:mnd // a fifth of the letters
			found[name] = prefix + meant
		}
	}
	return found
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

// closestSetting returns the setting that word was probably meant to be, or "". A setting means itself.
func closestSetting(word string, settings []string) string {
	return nearest.Of(word, settings, nearest.Rule{
		Edits: func(word, _ string) int { return len(word)/3 + 1 },
	})
}
