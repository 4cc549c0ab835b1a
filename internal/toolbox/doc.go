// Package toolbox finds what runs a binding: a registered Go function, a Python function, or an
// invoker of something outside, a NATS service for example. It makes what it finds, shares it
// between all its users, and closes it after the last one.
//
// toolbox.go has [Toolbox.Find] and what happens when manifests change ([Toolbox.Adopt]); registry.go the
// tools outside, one for each target; remote_tool.go one of them, which is made at its first call and closed after its
// last one; make_tool.go makes it by its kind.
package toolbox
