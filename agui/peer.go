package agui

import (
	"fmt"
	"strings"
)

// ProtocolVersion is the version of AG-UI that this package implements, for RUN_STARTED.
const ProtocolVersion = "1.0"

// Peer is the version of AG-UI that a client speaks. The zero Peer is a client from before 1.0, which does not send one.
type Peer struct{ Major, Minor int }

// ParsePeer reads the protocolVersion of an input. An absent one is the zero Peer. Every minor of major 1 is accepted, as the
// specification requires; another major is an error.
func ParsePeer(protocolVersion string) (Peer, error) {
	if protocolVersion == "" {
		return Peer{}, nil
	}
	major, minor, _ := strings.Cut(protocolVersion, ".")
	p := Peer{}
	var okMajor, okMinor bool
	p.Major, okMajor = number(major)
	p.Minor, okMinor = number(minor)
	if !okMajor || !okMinor {
		return Peer{}, &InputError{
			Code: CodeInvalidField, Field: "protocolVersion",
			Msg: fmt.Sprintf("invalid version %.20q: use MAJOR.MINOR, for example %q, or omit it before 1.0", protocolVersion, ProtocolVersion),
		}
	}
	if p.Major != 1 {
		return Peer{}, &InputError{
			Code: CodeUnsupportedVersion, Field: "protocolVersion",
			Msg: fmt.Sprintf("unsupported version %.20q: this server speaks %s", protocolVersion, ProtocolVersion),
		}
	}
	return p, nil
}

// number reads up to four digits.
func number(s string) (n int, ok bool) {
	if s == "" || len(s) > 4 || strings.Trim(s, "0123456789") != "" {
		return 0, false
	}
	for _, digit := range s {
		n = 10*n + int(digit-'0')
	}
	return n, true
}

// Before1 reports whether the client is from before 1.0: see [Downgrade].
func (p Peer) Before1() bool { return p == Peer{} }
