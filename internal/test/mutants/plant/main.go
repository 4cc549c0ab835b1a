// Command plant writes a copy of the sources in which all faults of package mutants are planted, and an overlay with which
// the go command builds them: go test -overlay=DIR/overlay.json. With -points it plants the failpoints alone.
package main

import (
	"flag"
	"fmt"
	"os"

	"github.com/oneturn/oneturn/internal/test/mutants"
)

func main() {
	dir := flag.String("o", "bin/mutants", "directory to write to")
	points := flag.Bool("points", false, "plant the failpoints inside the rules, and no fault")
	flag.Parse()
	faults := mutants.All()
	if *points {
		faults = nil
	}
	if _, err := mutants.Write(".", *dir, faults, mutants.Points()); err != nil {
		fmt.Fprintln(os.Stderr, "plant:", err)
		os.Exit(1) //nolint:forbidigo // a main function
	}
}
