// Package config holds the settings of the commands: one documented struct each, filled from
// defaults, a config file, the environment and flags, later ones winning.
//
// The struct tags carry the name of the flag, the default and the help; names of variables
// and file keys follow from the flag (--soft-stop, ONETURN_SOFT_STOP, soft_stop), and
// docs/configuration.md is generated from them. All errors are reported together, each with a
// value that works.
//
// settings.go has the structs and field.go reads their tags; load.go fills them, with file.go for the
// config file; validate.go checks what belongs together. [Connect] (connect.go) turns the NATS part into
// a connection, [Logger] the log part into a logger.
package config
