// Package config holds the settings of the commands: one documented struct each, filled from
// defaults, a config file, the environment and flags, later ones winning.
//
// The struct tags carry the name of the flag, the default and the help; names of variables
// and file keys follow from the flag (--soft-stop, ONETURN_SOFT_STOP, soft_stop), and
// docs/configuration.md is generated from them. All errors are reported together, each with a
// value that works.
//
// The files, in reading order: settings.go (the structs of all commands), value_types.go (their types), struct_fields.go (the
// tags), load.go (flags, environment, file, defaults) with file.go, validate.go (settings that depend on each other) and
// misspelt.go (names that are not a setting). [Connect] in connect.go turns the NATS part into a connection, with nats_context.go
// for contexts of the NATS CLI, reconnect_socket.go (a dialer that closes the socket of the try before), and connect_error.go
// for what helps; logger.go makes the logger.
package config
