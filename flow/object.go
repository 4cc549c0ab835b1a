package flow

import (
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
)

// object reads an object of an orchestration key by key and reports what is wrong with it. After all
// keys have been read, close reports the unknown ones.
type object struct {
	c     *compiler
	m     map[string]any
	path  string
	order int
	read  []string
}

func (c *compiler) object(v any, path string, order int, what string) (*object, bool) {
	m, ok := c.isObject(v, path, order, what)
	return &object{c: c, m: m, path: path, order: order}, ok
}

func (c *compiler) isObject(v any, path string, order int, what string) (map[string]any, bool) {
	m, ok := v.(map[string]any)
	if !ok {
		c.addf(order, path, "type", "%s has to be an object, got %s", what, typeName(v))
	}
	return m, ok
}

// addf reports a problem of a key, of the object itself if key is "".
func (o *object) addf(key, rule, format string, args ...any) {
	path := o.path
	if key != "" {
		path += "/" + key
	}
	o.c.addf(o.order, path, rule, format, args...)
}

// value returns the value of a key; null counts as absent.
func (o *object) value(key string) (v any, ok bool) {
	o.read = append(o.read, key)
	v = o.m[key]
	return v, v != nil
}

func (o *object) text(key string) (text string, ok bool) {
	v, given := o.value(key)
	if text, ok = v.(string); given && !ok {
		o.addf(key, "type", "%s has to be a string, got %s", key, typeName(v))
	}
	return text, ok
}

func (o *object) values(key string) (m map[string]any, ok bool) {
	v, given := o.value(key)
	if m, ok = v.(map[string]any); given && !ok {
		o.addf(key, "type", "%s has to be an object, got %s", key, typeName(v))
	}
	return m, ok
}

// number returns a whole number of at least least, 0 if it is absent or wrong.
func (o *object) number(key string, least int) int {
	v, given := o.value(key)
	if !given {
		return 0
	}
	number, ok := v.(json.Number)
	n, err := strconv.ParseFloat(string(number), 64) // infinite if it is out of range
	switch {
	case !ok || err != nil && !errors.Is(err, strconv.ErrRange) || !isWhole(string(number)) || n != math.Trunc(n):
		o.addf(key, "type", "%s has to be an integer, got %s", key, typeName(v))
	case n > maxNumber:
		o.addf(key, "maximum", "%s has to be at most %d", key, maxNumber)
	case n < float64(least):
		o.addf(key, "minimum", "%s has to be at least %d", key, least)
	default:
		return int(n)
	}
	return 0
}

// maxNumber bounds numbers of requests: 24 days in milliseconds.
const maxNumber = 1<<31 - 1

// enum returns one of the allowed texts, "" if it is absent or wrong.
func (o *object) enum(key string, allowed ...string) string {
	text, ok := o.text(key)
	if ok && !slices.Contains(allowed, text) {
		o.addf(key, "enum", "%s has to be one of %s", key, strings.Join(allowed, ", "))
		return ""
	}
	return text
}

// id returns an identifier, the fallback if it is absent. Extra has the characters that it may have
// besides letters and digits.
func (o *object) id(key, fallback, extra string) string {
	text, ok := o.text(key)
	if !ok {
		return fallback
	}
	if len(text) > maxStepID || !consistsOf(text, extra) {
		o.addf(key, "pattern", "%s may consist of ASCII letters, digits and %s only, and have at most %d of them", key, strings.Join(strings.Split(extra, ""), " "), maxStepID)
		return fallback
	}
	return text
}

// What ids of steps and keys of results may have besides letters and digits.
const (
	inStepID = "_.:-"
	inKey    = "_.-"
)

// maxStepID bounds ids and keys, in bytes.
const maxStepID = 128

// consistsOf reports whether s is made of ASCII letters, digits and the extra characters, at least one.
func consistsOf(s, extra string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return !isAlphanumeric(r) && !strings.ContainsRune(extra, r)
	})
}

// isAlphanumeric reports whether r is an ASCII letter or digit.
func isAlphanumeric(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
}

// close reports the keys that were not read.
func (o *object) close() {
	var unknown []string
	for key := range o.m {
		if !slices.Contains(o.read, key) {
			unknown = append(unknown, key)
		}
	}
	slices.Sort(unknown)
	for _, key := range unknown[:min(len(unknown), MaxProblems)] {
		o.c.addf(o.order, pointer(o.path, clip(key)), "additionalProperties", "key %q is unknown; known: %s.%s", clip(key), strings.Join(o.read, ", "), o.c.closest(key, o.read))
	}
}
