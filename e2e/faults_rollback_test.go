package e2e

import (
	"bufio"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/client"
	"github.com/restripe/restripe/agent/store/storetest/server"
)

const widestClass = `classes:
- name: default
  ladder: rep(3),rs(2,2),rs(4,2)
  default: rs(4,2)
  prefixes: [""]
  packBelow: 1KiB
`

// TestServersThatGoBack crashes one Redis after the other, set up as Debian does it: each comes back at once as it was when
// it last wrote its dump, with the markers and without the blocks. Each time the cluster says so, without being asked to
// read anything, and makes good what was lost before the next one crashes.
func TestServersThatGoBack(t *testing.T) {
	t.Parallel()
	var servers []*server.Process
	stores := directories(t, 3)
	for range 3 {
		s := server.Redis(t, "--save", "3600 1 300 100 60 10000", "--appendonly", "no")
		servers, stores = append(servers, s), append(stores, "redis://"+s.Addr)
	}
	g := gatewayOver(t, widestClass, agentsOver(t, stores...)...)
	c := clientOf(t, g.address)
	data := noise(4, 60_000)
	put(t, c, "before", data, client.PutOptions{})
	for _, s := range servers {
		dump(t, s.Addr)
	}
	keys := []string{"before"}
	for i := range 10 {
		keys = append(keys, fmt.Sprintf("since-%d", i))
		put(t, c, keys[i+1], data, client.PutOptions{})
	}
	status := func() api.Status {
		t.Helper()
		status, err := c.Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return status
	}
	for i, s := range servers {
		if _, err := c.PauseRepair(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.Restart() // by a kill, after which the dump is read
		until(t, fmt.Sprintf("the cluster notices that server %d of 3 went back", i+1), func() bool {
			is := status()
			return is.NotWhole == is.Groups && is.CanLose == 1
		})
		if _, err := c.ResumeRepair(t.Context()); err != nil {
			t.Fatal(err)
		}
		until(t, "every group is whole again", func() bool {
			is := status()
			return is.NotWhole == 0 && is.CanLose == 2
		})
		for _, key := range keys {
			stat, err := c.Stat(t.Context(), key)
			if err != nil {
				t.Fatal(err)
			}
			for _, group := range stat.Groups {
				for _, slot := range group.Slots {
					if slot.State != "ok" {
						t.Errorf("server %d of 3 went back: all is whole, says the status, and slot %d of %s is %s", i+1, slot.Slot, key, slot.State)
					}
				}
			}
		}
		if t.Failed() {
			return
		}
	}
	for _, key := range keys {
		holds(t, c, key, data)
	}
	atRest(t, c)
}

// dump has a Redis write what it holds to disk.
func dump(t *testing.T, address string) {
	t.Helper()
	connection, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	if _, err := fmt.Fprint(connection, "SAVE\r\n"); err != nil {
		t.Fatal(err)
	}
	if answer, err := bufio.NewReader(connection).ReadString('\n'); err != nil || !strings.HasPrefix(answer, "+OK") {
		t.Fatalf("SAVE: %q, %v", answer, err)
	}
}
