// Package faults holds the fault rows that need neither killed processes (package crash) nor
// broken servers and networks (package chaos): storms of duplicates, damaged records, poison,
// lost rights and credentials, deploys. docs/faults.md lists every row with its tests.
package faults
