// Package crash is the crash matrix: real worker processes on a real server are killed at
// every point of the journal's path, for every effect, and the checker of package oneturntest
// checks what they have stored. Its tests need the build tag `failpoints`; `make crash` runs
// them.
package crash
