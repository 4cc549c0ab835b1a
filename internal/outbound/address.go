package outbound

import (
	"context"
	"fmt"
	"net/netip"
	"syscall"
)

// Which addresses may be dialled: the check runs on the address that a name resolved to, at the moment of
// dialling, so that no second answer of DNS can lead elsewhere.

// AddressError reports that an address may not be dialled.
type AddressError struct {
	Addr netip.Addr // where the name leads to; not for models and users
	Kind string     // of address: "loopback", "private", …
}

// Error implements error.
func (e *AddressError) Error() string { return fmt.Sprintf("%s is a %s address", e.Addr, e.Kind) }

// guard knows which addresses may be dialled.
type guard struct {
	special []special
	global  netip.Prefix // the assigned part of IPv6; the rest is unassigned
	allow   []netip.Prefix
}

// special is a range of addresses outside the public internet, by IANA's registries
// of special-purpose addresses and what clouds put their metadata on.
type special struct {
	kind   string
	prefix netip.Prefix
	inner  func(netip.Addr) netip.Addr // the IPv4 address that a packet gets to in the end
}

// metadata is where a cloud gives programs their credentials.
const metadata = "metadata"

func newGuard(allow []netip.Prefix) *guard {
	g := &guard{global: netip.MustParsePrefix("2000::/3")}
	for _, p := range allow {
		if a := p.Addr(); a.Is4In6() && p.Bits() >= 96 { // addresses are compared unmapped
			p = netip.PrefixFrom(a.Unmap(), p.Bits()-96)
		}
		g.allow = append(g.allow, p)
	}
	add := func(kind string, inner func(netip.Addr) netip.Addr, prefixes ...string) {
		for _, p := range prefixes {
			g.special = append(g.special, special{kind, netip.MustParsePrefix(p), inner})
		}
	}
	add(metadata, nil, "169.254.169.254/32", "169.254.170.2/32", "168.63.129.16/32", "100.100.100.200/32", "192.0.0.192/32",
		"fd00:ec2::/32", "fd20:ce::254/128")
	add("loopback", nil, "127.0.0.0/8", "::1/128")
	add("unspecified", nil, "0.0.0.0/8", "::/128")
	add("private", nil, "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7", "fec0::/10")
	add("link-local", nil, "169.254.0.0/16", "fe80::/10")
	add("carrier-grade NAT", nil, "100.64.0.0/10")
	add("multicast", nil, "224.0.0.0/4", "ff00::/8")
	add("reserved", nil, "240.0.0.0/4", "192.0.0.0/24", "192.88.99.0/24", "198.18.0.0/15", "100::/64", "100:0:0:1::/64", "5f00::/16")
	add("documentation", nil, "192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24", "2001:db8::/32", "3fff::/20")
	add("NAT64", last4, "64:ff9b::/96")
	add("NAT64", nil, "64:ff9b:1::/48")
	add("IPv4-translated", last4, "::ffff:0:0:0/96")
	add("IPv4-compatible", last4, "::/96")
	add("6to4", func(a netip.Addr) netip.Addr { b := a.As16(); return netip.AddrFrom4([4]byte(b[2:6])) }, "2002::/16")
	add("Teredo", func(a netip.Addr) netip.Addr {
		b := a.As16()
		return netip.AddrFrom4([4]byte{^b[12], ^b[13], ^b[14], ^b[15]})
	}, "2001::/32")
	add("reserved", nil, "2001::/23")
	return g
}

func last4(a netip.Addr) netip.Addr {
	b := a.As16()
	return netip.AddrFrom4([4]byte(b[12:16]))
}

// check returns an *[AddressError] if an address may not be dialled. An address that carries
// another one needs both allowed.
func (g *guard) check(addr netip.Addr) error {
	plain := addr.Unmap().WithZone("")
	is := g.is(plain)
	switch {
	case is.kind == "":
		return nil
	case !g.allowed(plain, is):
		return &AddressError{addr, is.kind}
	case is.inner != nil:
		return g.check(is.inner(plain))
	}
	return nil
}

// is returns what an address is, without a kind if it is public.
func (g *guard) is(a netip.Addr) special {
	for _, s := range g.special {
		if s.prefix.Contains(a) {
			return s
		}
	}
	if a.Is6() && !g.global.Contains(a) {
		return special{kind: "reserved"}
	}
	return special{}
}

// allowed reports whether the manifest allows an address. An operator who allows a wide network does not think
// of the metadata service of a cloud in it, which returns credentials: it must be allowed by its exact address.
func (g *guard) allowed(a netip.Addr, is special) bool {
	for _, p := range g.allow {
		if p.Contains(a) && (is.kind != metadata || p.Bits() >= is.prefix.Bits()) {
			return true
		}
	}
	return false
}

// control is called with the address that is about to be dialled: no name can be resolved to
// another one after the check.
func (g *guard) control(_ context.Context, _, address string, _ syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("check the address to dial: %w", err)
	}
	return g.check(to.Addr())
}
