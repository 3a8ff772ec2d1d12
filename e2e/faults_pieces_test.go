package e2e

import (
	"bufio"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/client"
	"github.com/restripe/restripe/agent/store/storetest/server"
)

// manyGroups is a class whose groups are as small as can be, so that an update of the catalog has about 43 MiB in it.
const manyGroups = "classes: [{name: default, ladder: 'rep(2)', prefixes: [''], groupBytes: 64KiB, packBelow: 1KiB}]"

// TestGatewayKilledBetweenPieces kills a gateway with SIGKILL while an object is put over another one whose groups are committed in
// several pieces, after another number of pieces each time. The former object stands, and nothing is left of the put.
func TestGatewayKilledBetweenPieces(t *testing.T) {
	t.Parallel()
	var stores []string
	var servers []*server.Process
	for range 2 {
		s := server.Redis(t)
		servers, stores = append(servers, s), append(stores, "redis://"+s.Addr)
	}
	blocks := func() (counts [2]int) {
		for i, s := range servers {
			counts[i] = blocksOf(t, s.Addr)
		}
		return counts
	}
	arguments := []string{
		"gateway", "--catalog", "sqlite:" + filepath.Join(t.TempDir(), "catalog.db"), "--nodes", nodeFile(t, agentsOver(t, stores...)...),
		"--classes", write(t, "classes.yaml", manyGroups), "--listen", "127.0.0.1:0", "--grace", "0s",
	}
	g := serve(t, arguments...)
	c := clientOf(t, g.address)
	old := noise(1, 300_000)
	put(t, c, "k", old, client.PutOptions{})
	before := blocks()
	if before == [2]int{} {
		t.Fatal("there are no blocks")
	}
	for pieces := 1; pieces <= 2; pieces++ {
		ended := make(chan error, 1)
		go func() {
			body := &generator{random: rand.NewChaCha8([32]byte{byte(pieces)}), left: 1 << 30, sum: sha256.New()}
			_, err := c.Put(t.Context(), "k", body, client.PutOptions{})
			ended <- err
		}()
		for committed := 1; committed <= pieces; committed++ {
			until(t, fmt.Sprintf("%d pieces are committed", committed), func() bool {
				select {
				case err := <-ended:
					t.Fatalf("the put has ended: %v", err)
				default:
				}
				return shown(t, g.address, "restripe_pieces_committed_total") >= float64(committed)
			})
		}
		if puts := shown(t, g.address, "restripe_puts_in_pieces"); puts != 1 {
			t.Errorf("%v puts are in pieces", puts)
		}
		g.kill(t)
		if err := <-ended; err == nil {
			t.Fatal("the put was acknowledged")
		}
		left := blocks()
		g = serve(t, arguments...)
		c = clientOf(t, g.address)
		holds(t, c, "k", old)
		emptied(t, c, blocks, before)
		atRest(t, c)
		if after := blocks(); after != before {
			t.Errorf("after a kill with %d pieces stores hold %v blocks, %v before", pieces, after, before)
		}
		if swept := shown(t, g.address, "restripe_pieces_swept_total"); swept < float64(pieces) {
			t.Errorf("%v pieces were swept, and %d were committed", swept, pieces)
		}
		holds(t, c, "k", old)
		t.Logf("killed with %d pieces and %v blocks, of which %v are left", pieces, left, before)
	}
	whole := noise(2, 50<<20)
	put(t, c, "k", whole, client.PutOptions{})
	holds(t, c, "k", whole)
	if err := c.Delete(t.Context(), "k"); err != nil {
		t.Error(err)
	}
	emptied(t, c, blocks, [2]int{})
	atRest(t, c)
	if after := blocks(); after != [2]int{} {
		t.Errorf("after all was deleted stores hold %v blocks", after)
	}
}

// emptied sweeps until stores have so many blocks and no more, for as long as they become fewer.
func emptied(t *testing.T, c *client.Client, blocks func() [2]int, want [2]int) {
	t.Helper()
	for had := blocks(); had != want; {
		until(t, fmt.Sprintf("stores with %v blocks have fewer, of which %v stay", had, want), func() bool {
			_, err := c.Sweep(t.Context(), api.SweepRequest{})
			now := blocks()
			fewer := err == nil && now[0]+now[1] < had[0]+had[1]
			if fewer {
				had = now
			}
			return fewer
		})
	}
}

// blocksOf is how many blocks a Redis has.
func blocksOf(t *testing.T, address string) (count int) {
	t.Helper()
	connection, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.WriteString(connection, "KEYS restripe.value/b/*\r\n")
	if err == nil {
		_, err = fmt.Fscanf(bufio.NewReader(connection), "*%d\r\n", &count)
	}
	if err := errors.Join(err, connection.Close()); err != nil {
		t.Fatal(err)
	}
	return count
}

// shown is what a gateway shows of a metric without labels.
func shown(t *testing.T, address, metric string) (value float64) {
	t.Helper()
	reply, err := (&http.Client{Timeout: 10 * time.Second}).Get("http://" + address + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(reply.Body)
	if err := errors.Join(err, reply.Body.Close()); err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(text), "\n"+metric+" ")
	if _, err := fmt.Sscan(rest, &value); err != nil || !found {
		t.Fatalf("%s is not shown: %v", metric, err)
	}
	return value
}
