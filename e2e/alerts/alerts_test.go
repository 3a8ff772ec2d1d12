// Package alerts_test has a Prometheus ask a cluster of real processes, over TLS and with a token, as operators of clusters do, and lives
// through what the alerts are about: each has to come with its labels and its words, and no rule may be about what nobody shows.
// `make alerts` runs it.
package alerts_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/yaml"

	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/pki"
	"github.com/restripe/restripe/agent/store/storetest/server"
)

// rulesFile are the alerts as they are installed.
const rulesFile = "../../playbooks/monitoring/alerts.yaml"

// haste is what the copy of the rules has in place of what would take too long, or more bytes than a test writes; `for` apart, which is a
// second everywhere.
var haste = map[string][2]string{
	"RestripeDeadSpace":          {"> 2^30", "> 0"},
	"RestripeCatalogUnwritable":  {"> 120", "> 20"},
	"RestripeCatalogCopyMissing": {"[6h:1m]", "[6h:1s]"},
}

// named are metrics of the project in an expression.
var named = regexp.MustCompile(`\brestripe_[a-z0-9_]+`)

// rules reads the alerts, writes a copy of them in which nothing has to last, and returns their names and the metrics that they are about.
func rules(t *testing.T, into string) (alerts, metrics []string) {
	t.Helper()
	text, err := os.ReadFile(rulesFile)
	if err != nil {
		t.Fatal(err)
	}
	var all struct {
		Groups []struct {
			Name  string           `json:"name"`
			Rules []map[string]any `json:"rules"`
		} `json:"groups"`
	}
	if err := yaml.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	for _, group := range all.Groups {
		for _, rule := range group.Rules {
			name, expression := rule["alert"].(string), rule["expr"].(string)
			alerts = append(alerts, name)
			metrics = append(metrics, named.FindAllString(expression, -1)...)
			if change, is := haste[name]; is {
				if strings.Count(expression, change[0]) != 1 {
					t.Fatalf("%s has no single %q: %s", name, change[0], expression)
				}
				rule["expr"] = strings.Replace(expression, change[0], change[1], 1)
			}
			if rule["for"] != nil {
				rule["for"] = "1s"
			}
		}
	}
	copied, err := yaml.Marshal(all)
	if err == nil {
		err = os.WriteFile(into, copied, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(metrics)
	return alerts, slices.Compact(metrics)
}

// TestAlertsComeTrue does to a cluster what the alerts are about, one after the other.
func TestAlertsComeTrue(t *testing.T) {
	w := start(t)
	alerts, metrics := rules(t, w.at("rules.yaml"))
	p := w.watch()
	p.await("all three are asked", `count(up{job="restripe"} == 1) == 3`)
	p.await("objects survive the loss of a node", "restripe_losable_nodes == 1")
	p.await("the operator shows what is declared", `restripe_condition{kind="StorageBackend", condition="Ready"} == 1`)
	if firing := p.alerts(); len(firing) > 0 {
		t.Errorf("of a cluster that is well there is said: %+v", firing)
	}
	for _, part := range []struct {
		alert  string
		happen func() // nil: it comes of what has happened
		labels map[string]string
		words  string // of the summary
	}{
		{"RestripeDeadSpace", w.leaveDead, map[string]string{"class": "small"}, "small objects of class small leave "},
		{"RestripeVerificationFailed", w.spoil, nil, "Blocks were found that are not what they should be."},
		{
			"RestripePlanInfeasible", w.declareTooMuch, map[string]string{"kind": "RedundancyPolicy", "name": "wide"},
			"RedundancyPolicy wide declares cannot be carried out",
		},
		{
			"RestripeDeclarationStalled", nil, map[string]string{"kind": "RedundancyPolicy", "name": "wide"},
			"RedundancyPolicy wide gets nowhere without a person",
		},
		{"RestripeCertificateExpires", w.certifyBriefly, map[string]string{"identity": w.identity("n4")}, " expires in 59m "},
		{"RestripeNodeContentsReplaced", w.empty, map[string]string{"node": "n3"}, "The store of node n3 has other contents"},
		{"RestripeForeignStore", w.exchange, map[string]string{"node": "n5"}, "The store of node n5 is another's"},
		{"RestripeTransitionStalled", w.stall, map[string]string{"transition": "slow"}, "Transition slow has moved nothing for an hour."},
		{"RestripeNodeDown", w.lose, map[string]string{"node": "n1", "domain": "d1"}, "Node n1 of failure domain d1 does not serve."},
		{"RestripeRedundancyBelowPolicy", nil, map[string]string{"class": "files"}, " groups of class files lack blocks."},
		{"RestripeNoNodeToLose", nil, nil, "The loss of one more node may lose objects."},
		{"RestripeCatalogRefused", w.copyCatalog, map[string]string{"node": "n2"}, "Node n2 does not obey this catalog"},
		{"RestripeCatalogCopyMissing", nil, nil, "1 of the copies that the catalog had in the last six hours are missing."},
		{"RestripeCatalogNearlyFull", w.fillCatalog, nil, "of what its engine may hold."},
		{"RestripeCatalogUnwritable", w.loseCatalog, map[string]string{"job": "restripe"}, "has not written to the catalog for "},
	} {
		if !slices.Contains(alerts, part.alert) {
			t.Errorf("there is no alert %s", part.alert)
		}
		began := time.Now()
		if part.happen != nil {
			part.happen()
		}
		p.fires(part.alert, part.labels, part.words)
		t.Logf("%s after %v", part.alert, time.Since(began).Round(100*time.Millisecond))
	}
	shown := p.names()
	for _, metric := range metrics {
		if !slices.Contains(shown, metric) {
			t.Errorf("an alert is about %s, which nobody showed", metric)
		}
	}
}

// leaveDead deletes most of what shares groups, again and again until more was seen to be dead than is allowed, before it was compacted, and
// pauses the compaction then.
func (w *world) leaveDead() {
	batch := 0
	w.await("what is dead was seen", func(ctx context.Context) error {
		batch++
		key := func(i int) string { return fmt.Sprintf("small/%d/%d", batch, i) }
		var puts errgroup.Group // at once, so that they share groups
		for i := range 60 {
			puts.Go(func() error { return w.tryPut(ctx, key(i), bytes.Repeat([]byte{byte(i)}, 4<<10)) })
		}
		err := puts.Wait()
		for i := range 60 {
			if err == nil && i%10 != 0 {
				err = w.client.Delete(ctx, key(i))
			}
		}
		if err != nil {
			return err
		}
		return w.prometheus.holds(ctx, `restripe_dead_bytes{class="small"}
			> 3 * restripe_dead_at_most_ratio * (restripe_packed_bytes - restripe_dead_bytes)`)
	})
	_, err := w.client.PauseCompaction(w.t.Context())
	w.ok(err)
}

// spoil changes a byte in each block of a store, and has everything looked through.
func (w *world) spoil() {
	spoilt := 0
	w.ok(filepath.WalkDir(w.store("n2"), func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil || len(text) < 4<<10 {
			return err
		}
		spoilt++
		text[len(text)/2] ^= 1
		return os.WriteFile(path, text, 0o600)
	}))
	if spoilt == 0 {
		w.t.Fatal("the store of n2 has no blocks")
	}
	_, err := w.client.StartScrub(w.t.Context(), api.ScrubRequest{})
	w.ok(err)
}

// declareTooMuch declares a code over more nodes than there are.
func (w *world) declareTooMuch() {
	w.apply(`apiVersion: restripe.io/v1alpha1
kind: RedundancyPolicy
metadata: {name: wide}
spec: {backendRef: watched, selector: {prefixes: [wide/]}, ladder: [rep(3), "rs(12,2)"]}
`)
}

// certifyBriefly gives an agent a certificate for an hour.
func (w *world) certifyBriefly() {
	w.certify(pki.RoleAgent, "n4", time.Hour)
	w.restart("n4", func() {})
}

// empty takes away what a store has.
func (w *world) empty() {
	w.restart("n3", func() { w.ok(os.RemoveAll(w.store("n3"))) })
}

// exchange gives two agents the stores of one another.
func (w *world) exchange() {
	w.ok(w.cluster.Halt("n6"))
	w.ok(w.cluster.Halt("n5"))
	w.ok(os.Rename(w.store("n5"), w.at("aside")))
	w.ok(os.Rename(w.store("n6"), w.store("n5")))
	w.ok(os.Rename(w.at("aside"), w.store("n6")))
	w.restart("n5", func() {})
}

// stall begins a transition that may move a byte in a second.
func (w *world) stall() {
	_, err := w.client.StartTransition(w.t.Context(), api.TransitionRequest{
		ID: "slow", Selector: api.Selector{Class: "files"}, To: "rs(4,1)", BytesPerSecond: 1, Concurrency: 1,
	})
	w.ok(err)
}

// lose ends an agent.
func (w *world) lose() { w.ok(w.cluster.Halt("n1")) }

// copyCatalog starts a gateway over a copy of the catalog, so that two of them claim the same nodes. The catalog has lost its replica then.
func (w *world) copyCatalog() {
	host, port, err := net.SplitHostPort(w.catalog.Addr)
	w.ok(err)
	replica := server.Redis(w.t, "--replicaof", host+" "+port, "--maxmemory-policy", "noeviction")
	redis := w.dial(replica.Addr)
	defer redis.Close()
	w.await("the copy is whole", func(ctx context.Context) error {
		said, err := redis.Do(ctx, redis.B().Info().Section("replication").Build()).ToString()
		if err == nil && !strings.Contains(said, "master_link_status:up") {
			err = errors.New(said)
		}
		return err
	})
	w.prometheus.await("the copy is seen", "restripe_catalog_replica_up == 1")
	w.ok(redis.Do(w.t.Context(), redis.B().Replicaof().No().One().Build()).Error())
	w.run("other", "", "gateway", "--id", "gw2", "--listen", w.other, "--catalog", "redis://"+replica.Addr,
		"--tls", w.certify(pki.RoleGateway, "gw2", 0), "--https", "--users", w.at("users.yaml"))
}

// fillCatalog takes room from the engine of the catalog until it has little more than it needs.
func (w *world) fillCatalog() {
	ctx := w.t.Context()
	redis := w.dial(w.catalog.Addr)
	defer redis.Close()
	memory, err := redis.Do(ctx, redis.B().Info().Section("memory").Build()).ToString()
	w.ok(err)
	var used int64
	_, text, _ := strings.Cut(memory, "used_memory:")
	_, err = fmt.Sscan(text, &used)
	w.ok(err)
	w.ok(redis.Do(ctx, redis.B().ConfigSet().ParameterValue().ParameterValue("maxmemory", fmt.Sprint(used*5/4)).Build()).Error())
}

// loseCatalog ends the engine of the catalog.
func (w *world) loseCatalog() { w.catalog.Kill() }
