//go:build linux

package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
)

// device is what the kernel counted on one network device; the same numbers are in /sys/class/net/DEVICE/statistics.
type device struct {
	received, sent counted
}

// counted is bytes, link headers included, in so many packets as the device saw them: segmentation is left to hardware
// that a virtual device does not have, so that one packet may carry up to 64 KiB.
type counted struct {
	bytes, packets int64
}

// headerBytes are the headers of a packet: Ethernet 14, IPv4 20, TCP 20 and its timestamps 12.
const headerBytes = 14 + 20 + 20 + 12

func (c counted) plus(other counted) counted {
	return counted{c.bytes + other.bytes, c.packets + other.packets}
}

func (c counted) minus(other counted) counted {
	return counted{c.bytes - other.bytes, c.packets - other.packets}
}

// headers is how many of the bytes are headers of packets.
func (c counted) headers() int64 { return c.packets * headerBytes }

// payload is what TCP carried.
func (c counted) payload() int64 { return c.bytes - c.headers() }

// countDevices reads the counters of all devices of the bench's own namespace.
func countDevices() (devices map[string]device, err error) {
	file, err := os.Open("/proc/net/dev")
	if err != nil {
		return nil, fmt.Errorf("counting bytes: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	return parseDevices(file)
}

// parseDevices reads the text of /proc/net/dev: two lines of headings, then a device a line with 16 numbers.
func parseDevices(text io.Reader) (map[string]device, error) {
	devices := map[string]device{}
	lines := bufio.NewScanner(text)
	for number := 1; lines.Scan(); number++ {
		if number <= 2 {
			continue
		}
		name, rest, found := strings.Cut(lines.Text(), ":")
		fields := strings.Fields(rest)
		if !found || len(fields) != 16 {
			return nil, fmt.Errorf("line %d of the device counters: %d numbers, want a name and 16", number, len(fields))
		}
		var values [16]int64
		for i, field := range fields {
			value, err := strconv.ParseInt(field, 10, 64)
			if err != nil || value < 0 {
				return nil, fmt.Errorf("line %d of the device counters: %q is not a count", number, field)
			}
			values[i] = value
		}
		devices[strings.TrimSpace(name)] = device{
			received: counted{values[0], values[1]},
			sent:     counted{values[8], values[9]},
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("reading the device counters: %w", err)
	}
	return devices, nil
}

// transfer is what crossed the network between two looks at its devices.
type transfer struct {
	delivered counted // to agents from agents
	sent      counted // by agents to agents: delivered, and what was lost on the way and sent again
	control   counted // between the gateway and the agents, both ways
}

// transferBetween sums up the links of a network. Devices are named from the bridge: what they received a node has sent.
// The gateway is the only node that talks to the bench itself, whose bytes the bridge's own device counts.
func transferBetween(before, after map[string]device) transfer {
	var t transfer
	var own, gateway device
	for name, now := range after {
		was := before[name]
		change := device{received: now.received.minus(was.received), sent: now.sent.minus(was.sent)}
		switch name {
		case bridgeDevice:
			own = change
		case gatewayName:
			gateway = change
		case "lo":
		default:
			t.delivered = t.delivered.plus(change.sent)
			t.sent = t.sent.plus(change.received)
		}
	}
	toAgents := gateway.received.minus(own.received)
	fromAgents := gateway.sent.minus(own.sent)
	t.delivered = t.delivered.minus(toAgents)
	t.sent = t.sent.minus(fromAgents)
	t.control = toAgents.plus(fromAgents)
	return t
}
