package model

import (
	"maps"
	"slices"
	"strings"
	"unicode"
)

// Plain is the form in which names of fields are compared: without case and without everything but
// letters and digits, so that userName and user_name are one name. Names that encoding/json takes
// for the same field have the same plain form.
func Plain(name string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return fold(r)
		}
		return -1
	}, name)
}

// fold returns the smallest rune that differs from r in case only.
func fold(r rune) rune {
	for {
		next := unicode.SimpleFold(r)
		if next <= r {
			return next
		}
		r = next
	}
}

// respell returns in with its keys as the fields are named, and whether that is another map. A key that no field names, in another
// spelling of a field, is that field: what takes the object may compare names as loosely, and would
// use a value that no rule has seen. Such a key is dropped when the field itself is there; of
// several the first in order counts.
func (r *objectRules) respell(in map[string]any) (named map[string]any, renamed bool) {
	var loose []string
	for key := range in {
		if _, isField := r.index[key]; isField {
			continue
		}
		if _, meant := r.plain[Plain(key)]; meant {
			loose = append(loose, key)
		}
	}
	if loose == nil {
		return in, false
	}
	named = maps.Clone(in)
	slices.Sort(loose)
	for _, key := range loose {
		delete(named, key)
		name := r.plain[Plain(key)]
		if _, there := named[name]; !there {
			named[name] = in[key]
		}
	}
	return named, true
}
