// Package budget shares a number of places out among tenants, so that none can take them all.
//
// Handlers use it for what a worker can hold only a limited number of: messages that wait for a redelivery, runs that
// wait for people or for a limit, and messages that are erased.
package budget
