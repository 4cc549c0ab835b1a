package agentjson

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
)

// Of several objects, those count that fit the model, and of these the ones that needed no repair. Equal ones are one. Only
// the first of each kind is kept, so that a text of many objects needs no more memory than its largest ones.

// candidate is an object that was read.
type candidate struct {
	at       int    // in the text
	json     string // strict
	object   map[string]any
	repairs  set
	around   set // list, encoded
	suspects bool
	before   int // pieces of prose
}

// choice is what is known of the objects so far.
type choice struct {
	n               int
	first           candidate
	clean, repaired fitting
}

// fitting are the objects that fit the model and are alike in needing repair.
type fitting struct {
	n       int
	first   candidate
	differs *candidate // from the first, nil if all are equal
}

// add adds an object. A single one is not compared with the model.
func (c *choice) add(one candidate, fits func(map[string]any) bool) {
	c.n++
	switch {
	case c.n == 1:
		c.first = one
		return
	case fits == nil:
		return
	case c.n == 2:
		c.sort(c.first, fits)
	}
	c.sort(one, fits)
}

// sort adds an object to the fitting ones, if it is one.
func (c *choice) sort(one candidate, fits func(map[string]any) bool) {
	if !fits(one.object) {
		return
	}
	to := &c.clean
	if one.repairs != 0 {
		to = &c.repaired
	}
	if to.n++; to.n == 1 {
		to.first = one
	} else if to.differs == nil && !reflect.DeepEqual(one.object, to.first.object) {
		to.differs = &one
	}
}

// choose returns the object of the text. If none fits, or nothing is known of the model, that is the first, and validation
// names what is missing.
func (s *search) choose() (candidate, *Error) {
	if s.choice.n == 0 {
		return candidate{}, s.nothing()
	}
	best := s.choice.clean
	if best.n == 0 {
		best = s.choice.repaired
	}
	switch {
	case best.n == 0:
		return s.choice.first, nil
	case best.differs != nil:
		return candidate{}, s.fail(Ambiguous, best.differs.at, fmt.Sprintf("%d objects fit the model and are not equal: send one", best.n))
	default:
		return best.first, nil
	}
}

func (s *search) found(c candidate) Found {
	around := s.around | c.around
	switch {
	case s.choice.n == 1 && s.others == c.before && s.others == len("json") && strings.EqualFold(string(s.lead), "json"):
		around.add(prefix)
	case s.choice.n > 1 || s.others > 0:
		around.add(prose)
	}
	f := Found{JSON: json.RawMessage(c.json), Object: c.object, Repairs: names(c.repairs, repairNames()), Around: names(around, surroundingNames())}
	if c.suspects {
		f.Warnings = []Warning{SuspectEscape}
	}
	return f
}

// nothing is the error of a text without an object that could be read.
func (s *search) nothing() *Error {
	switch {
	case s.broken != nil:
		return s.broken
	case s.isList && s.others == 1:
		return s.fail(NotAnObject, 0, "the text is a list: send one object")
	case json.Valid([]byte(s.text)):
		return s.fail(NotAnObject, 0, "the text is JSON, but not an object: send an object in braces")
	default:
		return s.fail(NoJSON, 0, "the text has no JSON object: send one in braces")
	}
}
