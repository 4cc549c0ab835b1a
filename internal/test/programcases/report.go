package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
)

// Result is the result of one case.
type Result struct {
	name      string
	leftOut   string   // why the case was not run
	failures  []string // what differs from the expectations
	unnoticed []string // expectations whose change was not noticed
}

// results runs the cases, some at the same time, and yields their results in their order.
func (o *options) results(ctx context.Context, cases []Case) func(yield func(Result) bool) {
	return func(yield func(Result) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		places := make(chan struct{}, o.parallel)
		list := make([]chan Result, len(cases))
		for i := range list {
			list[i] = make(chan Result, 1)
		}
		go func() {
			for i := range cases {
				places <- struct{}{}
				go func() {
					list[i] <- o.result(ctx, &cases[i])
					<-places
				}()
			}
		}()
		for _, r := range list {
			if !yield(<-r) {
				return
			}
		}
	}
}

// result runs a case.
func (o *options) result(ctx context.Context, c *Case) Result {
	r := Result{name: c.Name, leftOut: c.leftOut()}
	if r.leftOut != "" {
		return r
	}
	folder, err := os.MkdirTemp("", "programcase-")
	if err != nil {
		r.failures = []string{err.Error()}
		return r
	}
	defer os.RemoveAll(folder)
	seen, problems, err := c.run(ctx, folder)
	if err != nil {
		r.failures = []string{err.Error()}
	} else {
		r.failures = slices.Concat(problems, seen.verify(c.Expect))
	}
	switch {
	case len(r.failures) > 0 && o.keep != "":
		to := filepath.Join(o.keep, c.Name)
		if err := errors.Join(os.RemoveAll(to), os.CopyFS(to, os.DirFS(folder))); err != nil {
			r.failures = append(r.failures, err.Error())
		}
	case len(r.failures) == 0 && o.falsify:
		r.unnoticed = seen.unnoticed(c.Expect)
	}
	return r
}

// unnoticed returns the expectations that can be changed without a failure.
func (o *Observed) unnoticed(expect map[string]any) (list []string) {
	for _, key := range keys(expect) {
		changed, ok := falsified(expect)[key]
		if ok && !reflect.DeepEqual(changed, expect) && len(o.verify(changed)) == 0 {
			list = append(list, key)
		}
	}
	return list
}

// report writes a line for each result, what failed, and a summary.
func (o *options) report(out io.Writer, results func(yield func(Result) bool)) error {
	passed, failed, leftOut := 0, 0, 0
	for r := range results {
		switch {
		case r.leftOut != "":
			leftOut++
			fmt.Fprintf(out, "%s left out: %s\n", r.name, r.leftOut)
		case len(r.failures)+len(r.unnoticed) == 0:
			passed++
			fmt.Fprintf(out, "%s ok\n", r.name)
		default:
			failed++
			fmt.Fprintf(out, "%s FAIL\n", r.name)
			for _, f := range r.failures {
				fmt.Fprintf(out, "    %s\n", f)
			}
			for _, key := range r.unnoticed {
				fmt.Fprintf(out, "    a change of the expectation %s is not noticed\n", key)
			}
		}
	}
	fmt.Fprintf(out, "%d passed, %d failed, %d left out\n", passed, failed, leftOut)
	if failed > 0 {
		return errors.New("cases failed")
	}
	return nil
}
