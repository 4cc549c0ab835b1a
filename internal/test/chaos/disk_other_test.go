//go:build chaos && !linux

package chaos_test

// diskScenarios needs to mount a small file system, which is written for Linux only.
func diskScenarios() []scenario { return nil }
