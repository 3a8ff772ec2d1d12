package gateway_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/restripe/restripe/agent/store/storetest/server"
)

// The commands of testdata/redis.txt are answered as Redis answers them, except where a line says why not. A line is one command, with
// words in quotes where they are not plain; "# differs: pattern: reason" above it says what the answer of this server matches instead.
// "# section" has both begin with no keys and new connections.
func TestRedisAnswersAsRedisDoes(t *testing.T) {
	script, err := os.ReadFile("testdata/redis.txt")
	if err != nil {
		t.Fatal(err)
	}
	c := newCluster(t, 8)
	ours := c.serveRedis()
	real := server.Redis(t)
	var here, there *redisWire
	begin := func(version string) {
		here, there = dialRedis(t, ours), dialRedis(t, real.Addr)
		there.do("FLUSHALL")
		for _, key := range c.keys() {
			here.do("DEL", key)
		}
		for _, w := range []*redisWire{here, there} {
			w.do("HELLO", version)
		}
	}
	for _, version := range []string{"2", "3"} {
		begin(version)
		differs := ""
		for number, line := range strings.Split(string(script), "\n") {
			switch {
			case strings.HasPrefix(line, "# section"):
				begin(version)
				continue
			case strings.HasPrefix(line, "# differs: "):
				differs, _, _ = strings.Cut(strings.TrimPrefix(line, "# differs: "), ": ")
				continue
			case strings.HasPrefix(line, "#"), line == "":
				continue
			}
			here.send(line + "\r\n")
			there.send(line + "\r\n")
			got, want := here.reply(), there.reply()
			switch {
			case differs == "" && got != want:
				t.Errorf("redis.txt:%d, version %s: %s\n  here  %s\n  Redis %s", number+1, version, line, got, want)
			case differs != "" && !regexp.MustCompile("^(?s:"+differs+")$").MatchString(got):
				t.Errorf("redis.txt:%d, version %s: %s\n  here  %s\n  is not %s\n  Redis %s", number+1, version, line, got, differs, want)
			}
			differs = ""
		}
	}
}

// keys are those of all objects.
func (c *cluster) keys() (keys []string) {
	c.t.Helper()
	list, err := c.gateway.List(c.t.Context(), "", "", 10_000)
	if err != nil {
		c.t.Fatal(err)
	}
	for _, object := range list.Objects {
		keys = append(keys, object.Key)
	}
	return keys
}
