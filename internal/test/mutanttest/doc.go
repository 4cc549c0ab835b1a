// Package mutanttest runs tests again with an injected bug that they have to find: those of the calling
// package (mutanttest.go), or the crash and chaos tests (catchers.go). It is empty without the build tag
// mutants.
package mutanttest
