package gateway_test

import (
	"context"
	"flag"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	dto "github.com/prometheus/client_model/go"

	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/playbooks/monitoring"
)

var updateMetrics = flag.Bool("update-metrics", false, "write the table of docs/metrics.md anew")

// sample returns the value of a metric that has these labels, if there is one.
func sample(t *testing.T, families []*dto.MetricFamily, name string, labels map[string]string) (value float64, found bool) {
	t.Helper()
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, one := range family.GetMetric() {
			matches := 0
			for _, label := range one.GetLabel() {
				if want, asked := labels[label.GetName()]; asked && want == label.GetValue() {
					matches++
				}
			}
			if matches == len(labels) {
				return one.GetGauge().GetValue() + one.GetCounter().GetValue(), true
			}
		}
	}
	return 0, false
}

// What a gateway shows is in the table, keeps to the rules of Prometheus, and is true.
// serves has clients served over loopback until the test ends, and one of them sent something and answered.
func (c *cluster) serves(serve func(context.Context, net.Listener) error, ask, want string) {
	c.t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		c.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- serve(ctx, listener) }()
	c.t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			c.t.Error(err)
		}
	})
	conn, err := net.Dial("tcp", listener.Addr().String())
	if err == nil {
		_, err = io.WriteString(conn, ask)
	}
	answer := make([]byte, len(want))
	if err == nil {
		_, err = io.ReadFull(conn, answer)
	}
	if err != nil || string(answer) != want {
		c.t.Fatalf("%q, %v", answer, err)
	}
	if err := conn.Close(); err != nil {
		c.t.Error(err)
	}
}

func TestMetricsAreInTheTable(t *testing.T) {
	c := newCluster(t, 9)
	c.put("k", noise(200_000, 1), api.PutOptions{})
	server := httptest.NewServer(c.gateway.Handler())
	defer server.Close()
	reply, err := http.Get(server.URL + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	if err := reply.Body.Close(); err != nil {
		t.Error(err)
	}
	c.serves(c.gateway.ServeRedis, "PING\r\n", "+PONG\r\n")
	c.serves(c.gateway.ServeMemcached, "mn\r\n", "MN\r\n")
	c.serves(c.gateway.ServeS3, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", "HTTP/1.1 200 OK\r\n")
	problems, err := monitoring.Problems(c.gateway.Figures(), "../../docs/metrics.md", "Gateway", *updateMetrics)
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range problems {
		t.Error(problem)
	}

	lost := c.agents[0]
	lost.stop()
	c.await("a node that does not answer shows", func() bool {
		families, err := c.gateway.Figures().Gather()
		if err != nil {
			t.Fatal(err)
		}
		up, known := sample(t, families, "restripe_node_up", map[string]string{"node": string(lost.id)})
		broken, _ := sample(t, families, "restripe_groups_not_whole", map[string]string{"class": "default"})
		_, said := sample(t, families, "restripe_node_problem", map[string]string{"node": string(lost.id), "problem": "unreachable"})
		return known && up == 0 && broken > 0 && said
	})
	families, err := c.gateway.Figures().Gather()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]float64{
		"restripe_objects": 1, "restripe_object_bytes": 200_000, "restripe_verification_failures_total": 0, "restripe_losable_nodes": 1,
	} {
		if value, found := sample(t, families, name, nil); !found || value != want {
			t.Errorf("%s is %v (%v), want %v", name, value, found, want)
		}
	}
	if at, found := sample(t, families, "restripe_catalog_written_timestamp_seconds", nil); !found || at == 0 {
		t.Errorf("the catalog was written at %v (%v)", at, found)
	}
}
