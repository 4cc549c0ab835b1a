package python

import "time"

// slot is a child as its group sees it. The group's lock guards it.
type slot struct {
	*child
	load      int
	waiting   int    // calls that wait for an answer: they do not count as load
	function  string // that all of its calls run, "" if they run several
	exclusive bool   // runs a sync function, or one not yet known
	blocked   bool   // a call keeps its event loop from running
	retired   bool   // takes no new calls, ends with its last one
	idle      *time.Timer
}

// unused reports whether no call runs or waits for an answer in it.
func (s *slot) unused() bool { return s.load == 0 && s.waiting == 0 }

// waiter is a call that waits for a child.
type waiter struct {
	function string
	grant    chan *slot // buffered
}

// How well a child suits a call.
const (
	unsuitable     = iota
	otherFunctions // runs other async functions: one that blocks delays all of them
	attending      // idle, calls wait for answers in it
	idle
	alike // runs the same async function
)

func (s *slot) suits(function string, shared bool) int {
	switch {
	case s.blocked:
		return unsuitable
	case s.unused():
		return idle
	case s.load == 0:
		return attending
	case !shared || s.exclusive || s.load >= maxShared:
		return unsuitable
	case s.function == function:
		return alike
	default:
		return otherFunctions
	}
}
