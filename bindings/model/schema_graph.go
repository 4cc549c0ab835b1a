package model

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Before a schema is compiled, its sub-schemas are listed with their places, references are followed, and the cost
// of a check is bounded: a schema that refers to itself without end, or expands too far, is refused here.

// Bounds of a schema, checked before anything else compiles it.
const (
	maxExpanded    = 10_000 // sub-schemas when every reference is written out
	maxSchemaDepth = 64     // nesting of sub-schemas
	maxPrograms    = 40_000 // instructions of all patterns
)

// sub is one sub-schema of a document, with its edges to others: those that look at the same
// value and those that look at its members or items.
type sub struct {
	pointer    string
	raw        map[string]any
	boolSchema *bool // the schemas true and false
	ref        *sub
	pattern    *regexp.Regexp
	uncovered  bool // has a keyword that only the full schema check knows

	same    []*sub            // same value: $ref, allOf, anyOf, oneOf, not, if, then, else, dependentSchemas
	lists   map[string][]*sub // allOf, anyOf, oneOf
	single  map[string]*sub   // keywords with one sub-schema
	props   map[string]*sub   // properties
	members []*sub            // any member: additionalProperties, patternProperties, propertyNames, …
	prefix  []*sub            // prefixItems
	items   []*sub            // any item: items, contains, unevaluatedItems

	weight   int // what one visit costs besides the value
	expanded int // size when written out, 0 unknown, -1 being counted
}

// place of a keyword's sub-schemas.
type kind uint8

const (
	sameOne kind = iota + 1
	sameList
	sameMap
	memberOne
	memberMap
	propertyMap
	itemOne
	prefixList
	definitions // definitions
)

// keyword describes a keyword that has sub-schemas or that the tree does not cover.
type keyword struct {
	kind    kind // 0: no sub-schemas
	covered bool
}

// keywords lists them. What is not here is either a plain rule, or an annotation.
func keywords() map[string]keyword {
	return map[string]keyword{
		"allOf": {sameList, true}, "anyOf": {sameList, true}, "oneOf": {sameList, true},
		"not": {sameOne, false}, "if": {sameOne, false}, "then": {sameOne, false}, "else": {sameOne, false},
		"dependentSchemas": {sameMap, false}, "dependencies": {sameMap, false}, "dependentRequired": {0, false},
		"properties": {propertyMap, true}, "patternProperties": {memberMap, false},
		"additionalProperties": {memberOne, true}, "propertyNames": {memberOne, false},
		"unevaluatedProperties": {memberOne, false}, "unevaluatedItems": {itemOne, false},
		"items": {itemOne, true}, "contains": {itemOne, false}, "prefixItems": {prefixList, false},
		"minContains": {0, false}, "maxContains": {0, false},
		"$defs": {definitions, true}, "definitions": {definitions, true},
	}
}

// graph holds the sub-schemas of one document by their place.
type graph struct {
	refusals

	tree     any
	keywords map[string]keyword
	subs     map[string]*sub
	programs int
	visited  map[*sub]bool // see loop
	pending  []*sub        // with a reference that is not yet followed
}

// newGraph reads the document's sub-schemas and refuses what would be unsafe or slow. An invalid
// part counts as one that admits everything, so that the others are checked too.
func newGraph(name string, tree any) (*graph, *sub) {
	g := &graph{
		refusals: refusals{name: name}, tree: tree,
		keywords: keywords(), subs: map[string]*sub{}, visited: map[*sub]bool{},
	}
	root := g.read("", tree, 0)
	for len(g.pending) > 0 && !g.stopped {
		s := g.pending[len(g.pending)-1]
		g.pending = g.pending[:len(g.pending)-1]
		g.follow(s)
	}
	for _, pointer := range slices.Sorted(maps.Keys(g.subs)) {
		if g.stopped {
			break
		}
		g.bounded(g.subs[pointer])
	}
	return g, root
}

// read makes the sub-schema at pointer and those inside it.
func (g *graph) read(pointer string, tree any, depth int) *sub {
	if known := g.subs[pointer]; known != nil {
		return known
	}
	s := &sub{
		pointer: pointer, weight: 1, lists: map[string][]*sub{}, single: map[string]*sub{}, props: map[string]*sub{},
	}
	switch {
	case len(g.subs) >= maxExpanded:
		g.stop(pointer, "the schema has too many parts", "split it")
		return s
	case depth > maxSchemaDepth:
		g.stop(pointer, "it is nested too deeply", "move inner parts to $defs")
		return s
	}
	g.subs[pointer] = s
	switch tree := tree.(type) {
	case bool:
		s.boolSchema = &tree
		return s
	case map[string]any:
		s.raw = tree
	default:
		g.refuse(pointer, "a schema is an object, true or false", "write for example {type: string}")
		return s
	}
	g.plain(s)
	for _, key := range sortedKeys(s.raw) {
		word, ok := g.keywords[key]
		if !ok || g.stopped {
			continue
		}
		s.uncovered = s.uncovered || !word.covered
		g.inside(s, key, word.kind, depth+1)
	}
	return s
}

// plain checks the keywords without sub-schemas that need care.
func (g *graph) plain(s *sub) {
	const local = "use $ref to a place such as #/$defs/Name"
	for _, key := range []string{"$dynamicRef", "$dynamicAnchor", "$recursiveRef", "$recursiveAnchor", "$anchor", "$vocabulary"} {
		if _, given := s.raw[key]; given {
			g.refuse(s.pointer, "`"+key+"` is not supported", local)
		}
	}
	if _, given := s.raw["$id"]; given && s.pointer != "" {
		g.refuse(s.pointer, "`$id` inside of a schema is not supported", local)
	}
	if ref, given := s.raw["$ref"]; given {
		if text, ok := ref.(string); !ok || text != "#" && !strings.HasPrefix(text, "#/") {
			g.refuse(s.pointer, "`$ref` must lead to a place inside this schema, nothing is loaded", local)
		} else {
			g.pending = append(g.pending, s)
		}
	}
	if source, given := s.raw["pattern"]; given {
		if text, ok := source.(string); ok {
			s.pattern = g.compile(s.pointer+"/pattern", text)
		} else {
			g.refuse(s.pointer+"/pattern", "`pattern` is not a text", "put the regular expression in quotes")
		}
	}
	if values, ok := s.raw["enum"].([]any); ok {
		s.weight += len(appendKey(nil, values)) / 32 //nolint:mnd // a failure copies the whole list
	}
}

// compile compiles a pattern within the budget of the schema; nil if it cannot be used.
func (g *graph) compile(pointer, source string) *regexp.Regexp {
	re, size, reason := CompilePattern(source)
	if reason != "" {
		g.refuse(pointer, "the pattern "+reason, "write a simpler one")
		return nil
	}
	if g.programs += size; g.programs > maxPrograms {
		g.stop(pointer, "the patterns of the schema together are too large", "write simpler ones")
		return nil
	}
	return re
}

// inside reads the sub-schemas of one keyword.
func (g *graph) inside(s *sub, key string, k kind, depth int) {
	at := s.pointer + "/" + key
	switch value := s.raw[key]; k {
	case sameOne, memberOne, itemOne:
		child := g.read(at, value, depth)
		s.single[key] = child
		s.join(k, child)
	case sameList, prefixList:
		list, ok := value.([]any)
		if !ok || len(list) == 0 {
			g.refuse(at, "`"+key+"` must be a list of schemas that is not empty", "write for example "+key+": [{type: string}]")
			return
		}
		for i, tree := range list {
			child := g.read(at+"/"+strconv.Itoa(i), tree, depth)
			s.lists[key] = append(s.lists[key], child)
			s.join(k, child)
		}
	case sameMap, memberMap, propertyMap, definitions:
		object, ok := value.(map[string]any)
		if !ok {
			g.refuse(at, "`"+key+"` must be an object of schemas", "write for example "+key+": {name: {type: string}}")
			return
		}
		g.named(s, key, k, object, depth)
	}
}

// named reads the sub-schemas of a keyword that maps names to them.
func (g *graph) named(s *sub, key string, k kind, object map[string]any, depth int) {
	for _, name := range sortedKeys(object) {
		at := s.pointer + "/" + key + "/" + pathToken(name)
		if _, isList := object[name].([]any); isList && key == "dependencies" {
			continue
		}
		if key == "patternProperties" {
			g.compile(at, name)
		}
		child := g.read(at, object[name], depth)
		if k == propertyMap {
			s.props[name] = child
		}
		s.join(k, child)
	}
}

func (s *sub) join(k kind, child *sub) {
	switch k {
	case sameOne, sameList, sameMap:
		s.same = append(s.same, child)
	case memberOne, memberMap:
		s.members = append(s.members, child)
	case itemOne:
		s.items = append(s.items, child)
	case prefixList:
		s.prefix = append(s.prefix, child)
	case propertyMap, definitions:
	}
}

// bounded refuses schemas that check the same value endlessly or too often.
func (g *graph) bounded(s *sub) {
	if at := loop(s, g.visited); at != nil {
		g.stop(at.pointer, "circular references without a rule", "break the cycle")
	} else if s.size() > maxExpanded {
		g.stop(s.pointer, fmt.Sprintf("expanded it has more than %d parts", maxExpanded), "use fewer references that multiply")
	}
}

// loop finds a sub-schema that leads to itself at the same value. State holds true for those
// being looked at and false for those that are done.
func loop(s *sub, state map[*sub]bool) *sub {
	if open, seen := state[s]; seen {
		if open {
			return s
		}
		return nil
	}
	state[s] = true
	for _, next := range s.same {
		if at := loop(next, state); at != nil {
			return at
		}
	}
	state[s] = false
	return nil
}

// size counts the sub-schemas below s when references are written out; recursion counts once.
func (s *sub) size() int {
	switch {
	case s.expanded > 0:
		return s.expanded
	case s.expanded < 0:
		return 1
	}
	s.expanded = -1
	n := 1
	for next := range s.edges() {
		n = min(n+next.size(), maxExpanded+1)
	}
	s.expanded = n
	return n
}

// edges yields every sub-schema that s applies, in a fixed order.
func (s *sub) edges() func(yield func(*sub) bool) {
	return func(yield func(*sub) bool) {
		for _, group := range [][]*sub{s.same, s.members, s.prefix, s.items} {
			for _, next := range group {
				if !yield(next) {
					return
				}
			}
		}
		for _, name := range slices.Sorted(maps.Keys(s.props)) {
			if !yield(s.props[name]) {
				return
			}
		}
	}
}

// names returns the properties of s, sorted.
func (g *graph) names(s *sub) []string { return slices.Sorted(maps.Keys(s.props)) }

// child returns the sub-schema of a keyword that has one.
func (s *sub) child(key string) *sub { return s.single[key] }

// never reports whether s is the schema false.
func (s *sub) never() bool { return s != nil && s.boolSchema != nil && !*s.boolSchema }

// annotations do not change what a schema admits.
func isAnnotation(key string) bool {
	switch key {
	case "title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly", "format", "$comment", "$defs",
		"definitions", "$schema", "$id", "discriminator", "example": // the last two of OpenAPI
		return true
	default:
		return strings.HasPrefix(key, "x-")
	}
}

// onlyRef reports whether s is nothing but a reference.
func (s *sub) onlyRef() bool { return s.ref != nil && !s.moreThan("$ref") }

// moreThan reports whether s has another rule than key.
func (s *sub) moreThan(key string) bool {
	for other := range s.raw {
		if other != key && !isAnnotation(other) {
			return true
		}
	}
	return false
}
