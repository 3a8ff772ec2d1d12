package launch

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
)

// ports hands out loopback addresses to servers that must be told their port. A free port can be taken by somebody else
// before the server binds it; the server then ends, and the launcher notices that the port is busy and asks for another.
// Ports lie below those the kernel gives to outgoing connections, so that a server that restarts finds its own free.
type ports struct {
	mutex sync.Mutex
	given map[int]bool
}

const (
	lowestPort  = 10000
	highestPort = 32000 // exclusive; default lower end of outgoing ports is 32768 on Linux and higher elsewhere
	portTries   = 1000
)

// take returns a free loopback address that it has not given before.
func (p *ports) take() (string, error) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.given == nil {
		p.given = map[int]bool{}
	}
	end := min(highestPort, outgoingPortsBegin())
	if end <= lowestPort+portTries {
		return "", fmt.Errorf("finding a port: outgoing connections may use every port from %d on; raise net.ipv4.ip_local_port_range above %d", end, highestPort)
	}
	for range portTries {
		port := lowestPort + rand.IntN(end-lowestPort)
		address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		if !p.given[port] && addressFree(address) {
			p.given[port] = true
			return address, nil
		}
	}
	return "", fmt.Errorf("finding a port: %d tries between %d and %d found none free", portTries, lowestPort, end)
}

// addressFree reports whether a server could listen on address now.
func addressFree(address string) bool {
	listener, err := net.Listen("tcp", address)
	return err == nil && listener.Close() == nil
}

// outgoingPortsBegin is the lowest port the kernel gives to outgoing connections, as far as it says.
func outgoingPortsBegin() int {
	text, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range")
	if err != nil {
		return highestPort // not Linux: the range begins at 49152
	}
	fields := strings.Fields(string(text))
	if len(fields) == 0 {
		return highestPort
	}
	first, err := strconv.Atoi(fields[0])
	if err != nil {
		return highestPort
	}
	return first
}
