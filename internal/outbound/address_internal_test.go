package outbound

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAddressesThatAreNotPublicAreRefused(t *testing.T) {
	t.Parallel()
	g := newGuard(nil)
	for addr, kind := range map[string]string{
		"0.0.0.0": "unspecified", "0.1.2.3": "unspecified", "::": "unspecified",
		"127.0.0.1": "loopback", "127.255.255.254": "loopback", "::1": "loopback",
		"10.0.0.1": "private", "10.255.255.255": "private", "172.16.0.1": "private", "172.31.255.255": "private",
		"192.168.1.1": "private", "fc00::1": "private", "fdff::1": "private", "fec0::1": "private",
		"169.254.169.254": "metadata", "169.254.170.2": "metadata", "168.63.129.16": "metadata", "100.100.100.200": "metadata",
		"192.0.0.192": "metadata", "fd00:ec2::254": "metadata", "fd20:ce::254": "metadata",
		"169.254.1.1": "link-local", "fe80::1": "link-local", "febf::1": "link-local", "fe80::1%eth0": "link-local",
		"100.64.0.1": "carrier-grade NAT", "100.127.255.255": "carrier-grade NAT",
		"224.0.0.1": "multicast", "239.255.255.255": "multicast", "ff02::1": "multicast",
		"240.0.0.1": "reserved", "255.255.255.255": "reserved", "192.0.0.1": "reserved", "192.88.99.1": "reserved",
		"198.18.0.1": "reserved", "198.19.255.255": "reserved", "100::1": "reserved", "100:0:0:1::1": "reserved", "5f00::1": "reserved",
		"2001:10::1": "reserved", "2001:20::1": "reserved", "200::1": "reserved", "4000::1": "reserved", "::2:0:0:1": "reserved",
		"192.0.2.1": "documentation", "198.51.100.1": "documentation", "203.0.113.1": "documentation",
		"2001:db8::1": "documentation", "3fff::1": "documentation",
		"64:ff9b::a00:1": "NAT64", "64:ff9b::808:808": "NAT64", "64:ff9b:1::1": "NAT64",
		"::ffff:0:a00:1": "IPv4-translated", "::10.0.0.1": "IPv4-compatible", "2002:a00:1::1": "6to4", "2001::1": "Teredo",
		"::ffff:127.0.0.1": "loopback", "::ffff:169.254.169.254": "metadata", "::ffff:10.0.0.1": "private",
	} {
		var refused *AddressError
		require.ErrorAs(t, g.check(netip.MustParseAddr(addr)), &refused, addr)
		require.Equal(t, kind, refused.Kind, addr)
	}
}

func TestPublicAddressesAreDialled(t *testing.T) {
	t.Parallel()
	g := newGuard(nil)
	for _, addr := range []string{
		"1.1.1.1", "8.8.8.8", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "128.0.0.1", "172.15.255.255",
		"172.32.0.0", "192.167.255.255", "192.169.0.0", "223.255.255.255", "::ffff:8.8.8.8", "2001:4860:4860::8888", "2606:4700::1111",
	} {
		require.NoError(t, g.check(netip.MustParseAddr(addr)), addr)
	}
}

func TestAllowedAddressesAreDialledAndNoOthers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		allow, addr string
		allowed     bool
	}{
		{"10.1.0.0/16", "10.1.2.3", true},
		{"10.1.0.0/16", "10.2.0.1", false},
		{"10.1.0.0/16", "::ffff:10.1.2.3", true},
		{"::ffff:10.1.0.0/112", "10.1.2.3", true},
		{"fe80::/10", "fe80::1%eth0", true},
		{"0.0.0.0/0", "::1", false},
		// What gives credentials away is allowed by its own name only.
		{"fc00::/7", "fd00:ec2::254", false},
		{"fd00:ec2::/32", "fd00:ec2::254", true},
		{"0.0.0.0/0", "169.254.169.254", false},
		{"169.254.0.0/16", "::ffff:169.254.169.254", false},
		{"169.254.0.0/16", "169.254.1.1", true},
		{"169.254.169.254/32", "169.254.169.254", true},
		{"100.64.0.0/10", "100.100.100.200", false},
		// An address inside an address needs both.
		{"64:ff9b::/96", "64:ff9b::808:808", true},
		{"64:ff9b::/96", "64:ff9b::a9fe:a9fe", false},
		{"2002::/16", "2002:a00:1::1", false},
		{"2002::/16", "2002:808:808::1", true},
		{"2001::/32", "2001:0:808:808:0:0:f5ff:fffe", false}, // 10.0.0.1, inverted
		{"2001::/32", "2001:0:808:808:0:0:f7f7:f7f7", true},
	} {
		err := newGuard([]netip.Prefix{netip.MustParsePrefix(c.allow)}).check(netip.MustParseAddr(c.addr))
		require.Equal(t, c.allowed, err == nil, "%s with %s: %v", c.addr, c.allow, err)
	}
}
