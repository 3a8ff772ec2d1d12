//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
)

// The network lies in the range that RFC 2544 sets aside for benchmarks.
const (
	bridgeDevice  = "bridge"
	bridgeAddress = "198.18.0.254/24"
	insideDevice  = "eth0" // the end of a link inside a node's namespace
	gatewayName   = "gateway"
	proxyName     = "proxy"
)

// network is one namespace per node, each joined by one link to a bridge in the bench's own namespace.
type network struct {
	names []string // of namespaces, and of the bridge's ends of their links
}

// nodeName names the i-th data or parity node, from 0.
func nodeName(i int) string { return "n" + strconv.Itoa(i+1) }

// newNetwork makes namespaces for a gateway, a proxy and so many nodes.
func newNetwork(ctx context.Context, nodes int) (*network, error) {
	n := &network{names: []string{gatewayName, proxyName}}
	for i := range nodes {
		n.names = append(n.names, nodeName(i))
	}
	commands := [][]string{
		{"link", "add", bridgeDevice, "type", "bridge", "mcast_snooping", "0"},
		{"address", "add", bridgeAddress, "dev", bridgeDevice},
		{"link", "set", bridgeDevice, "up"},
	}
	for _, name := range n.names {
		commands = append(commands,
			[]string{"netns", "add", name},
			[]string{"link", "add", name, "type", "veth", "peer", "name", insideDevice, "netns", name},
			[]string{"link", "set", name, "master", bridgeDevice, "up"},
			[]string{"-n", name, "address", "add", n.address(name) + "/24", "dev", insideDevice},
			[]string{"-n", name, "link", "set", insideDevice, "up"},
			[]string{"-n", name, "link", "set", "lo", "up"},
		)
	}
	for _, arguments := range commands {
		if err := call(ctx, "ip", arguments...); err != nil {
			return nil, fmt.Errorf("building the network: %w", err)
		}
	}
	return n, nil
}

// close removes the network, so that the next part of a run can make its own; nobody may be in it any more. A link goes
// before its namespace, which the kernel clears only later.
func (n *network) close(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	var errs []error
	for _, name := range n.names {
		errs = append(errs, call(ctx, "ip", "link", "delete", name), call(ctx, "ip", "netns", "delete", name))
	}
	if err := errors.Join(append(errs, call(ctx, "ip", "link", "delete", bridgeDevice))...); err != nil {
		return fmt.Errorf("removing the network: %w", err)
	}
	return nil
}

// address returns the address of a namespace.
func (n *network) address(name string) string {
	for i := range n.names {
		if n.names[i] == name {
			return "198.18.0." + strconv.Itoa(i+1)
		}
	}
	panic("no namespace is called " + name) // invariant: names come from this network
}

// shape limits both ends of the named links to a rate, megabits per second.
func (n *network) shape(ctx context.Context, names []string, rate int) error {
	for _, name := range names {
		filter := []string{"root", "tbf", "rate", strconv.Itoa(rate) + "mbit", "burst", "128kb", "latency", "50ms"}
		if err := n.bothEnds(ctx, name, "replace", filter...); err != nil {
			return fmt.Errorf("shaping the link of %s: %w", name, err)
		}
	}
	return nil
}

// free lifts the limits of the named links.
func (n *network) free(ctx context.Context, names []string) error {
	for _, name := range names {
		if err := n.bothEnds(ctx, name, "delete", "root"); err != nil {
			return fmt.Errorf("lifting the limit of the link of %s: %w", name, err)
		}
	}
	return nil
}

func (n *network) bothEnds(ctx context.Context, name, verb string, filter ...string) error {
	outer := append([]string{"qdisc", verb, "dev", name}, filter...)
	inner := append([]string{"-n", name, "qdisc", verb, "dev", insideDevice}, filter...)
	for _, arguments := range [][]string{outer, inner} {
		if err := call(ctx, "tc", arguments...); err != nil {
			return err
		}
	}
	return nil
}
