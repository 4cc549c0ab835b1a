package dotenv

import (
	"errors"
	"regexp"
	"strings"
)

// maxFilled bounds what the values have together once their references are filled: a line that
// names the one above it twice doubles it.
const maxFilled = 128 << 10

var errTooLong = errors.New("its values have over 128 KiB once their ${…} are filled: name other variables less often")

// Variable is a name with its value.
type Variable struct{ Name, Value string }

// Names returns what the file sets.
func (f *File) Names() map[string]bool {
	names := make(map[string]bool)
	for _, a := range f.set {
		if names[a.name] = !a.none; a.none {
			delete(names, a.name)
		}
	}
	return names
}

// Variables returns what the file sets, in order and with the last value of each name. A
// reference is filled with what stands above it in the file, else with what env has, as NAME=value.
func (f *File) Variables(env []string) ([]Variable, error) {
	known, room := values(env), maxFilled
	own := make(map[string]bool)
	var order []string
	for _, a := range f.set {
		value, ok := fill(a.value, known, room)
		if !ok {
			return nil, errTooLong
		}
		room -= len(value)
		if !own[a.name] {
			order, own[a.name] = append(order, a.name), true
		}
		known[a.name] = value
	}
	names := f.Names()
	var set []Variable
	for _, name := range order {
		if names[name] {
			set = append(set, Variable{Name: name, Value: known[name]})
		}
	}
	return set, nil
}

func values(env []string) map[string]string {
	known := make(map[string]string, len(env))
	for _, entry := range env {
		name, value, _ := strings.Cut(entry, "=")
		known[name] = value
	}
	return known
}

var reference = regexp.MustCompile(`\$\{([^}:]*)(?::-([^}]*))?\}`)

// fill replaces ${NAME} and ${NAME:-default}; the default counts for a name that is not set. It
// reports false when the value has more than limit bytes.
func fill(value string, known map[string]string, limit int) (string, bool) {
	var b strings.Builder
	last := 0
	for _, at := range reference.FindAllStringSubmatchIndex(value, -1) {
		b.WriteString(value[last:at[0]])
		last = at[1]
		if filled, ok := known[value[at[2]:at[3]]]; ok {
			b.WriteString(filled)
		} else if at[4] >= 0 {
			b.WriteString(value[at[4]:at[5]])
		}
		if b.Len() > limit {
			return "", false
		}
	}
	b.WriteString(value[last:])
	return b.String(), b.Len() <= limit
}
