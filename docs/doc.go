// Package docs holds the pages for users and operators. It has no code but tests, which run what the
// pages show and check their tables against the program.
package docs
