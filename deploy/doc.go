// Package deploy has the files of the Docker Compose set-up. It has no code but tests, which check the files
// against the flags of the commands and a real server.
package deploy
