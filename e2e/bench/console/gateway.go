package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"k8s.io/utils/clock"

	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/operator/gateways/gatewaysfake"
)

// What lies in every class, and how fast a transition is: those that run are still at it when the measurement ends.
const (
	groupsEach = 4000
	cellBytes  = 1 << 20
	speed      = 16 << 20
)

// ladder is that of every class, hottest first.
var ladder = []string{"rep(3)", "rs(4,2)", "rs(12,2)"}

// fakeGateway answers over HTTP, as a gateway does, what a console asks; nothing is stored in it.
type fakeGateway struct{ cluster *gatewaysfake.Cluster }

func newGateway(s size) (*fakeGateway, error) {
	g := &fakeGateway{gatewaysfake.New(clock.RealClock{}, s.nodes, speed)}
	for i := range s.policies {
		name := policyName(i)
		spec := api.ClassSpec{Name: name, Ladder: ladder[0] + "," + ladder[1] + "," + ladder[2], Prefixes: []string{name + "/"}}
		if _, err := g.cluster.PutClass(context.Background(), spec); err != nil {
			return nil, fmt.Errorf("declaring class %s: %w", name, err)
		}
		for step, rate := range []float64{3000, 40, 0.1} { // what is used more than a group of its step should be is there, too
			for octave := range 4 {
				groups := int64(groupsEach / 12 * (1 + (i+octave+step)%3))
				if err := g.cluster.Add(name, ladder[step], groups, cellBytes, gatewaysfake.Constant(rate/float64(int(1)<<(2*octave)))); err != nil {
					return nil, err
				}
			}
		}
	}
	for i := range running {
		request := api.TransitionRequest{Selector: api.Selector{Class: policyName(i)}, ID: s.jobName(i), From: ladder[0], To: ladder[1]}
		if _, err := g.cluster.StartTransition(context.Background(), request); err != nil {
			return nil, fmt.Errorf("starting a transition: %w", err)
		}
	}
	return g, nil
}

func (g *fakeGateway) handler() http.Handler {
	mux := http.NewServeMux()
	answer := func(path string, ask func(r *http.Request) (any, error)) {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, r *http.Request) {
			value, err := ask(r)
			if err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
				return
			}
			w.Header().Set("Content-Type", "application/json")
			if err := json.NewEncoder(w).Encode(value); err != nil {
				slog.Warn("answering the console", "error", err)
			}
		})
	}
	answer("/v1/status", func(r *http.Request) (any, error) {
		status, err := g.cluster.Status(r.Context())
		if r.URL.Query().Get("brief") == "true" {
			status.CanLose = -1
		}
		for i := range status.Nodes {
			place(&status.Nodes[i], i)
		}
		for _, transition := range g.cluster.Transitions() {
			status.Transitions = append(status.Transitions, transition)
		}
		return status, err
	})
	answer("/v1/nodes", func(r *http.Request) (any, error) {
		status, err := g.cluster.Status(r.Context())
		list := api.NodeList{Patience: api.Patience{DownAfterSeconds: 30, OutAfterSeconds: 600}}
		for i, node := range status.Nodes {
			place(&node, i)
			list.Nodes = append(list.Nodes, api.NodeInfo{NodeStatus: node, Declared: "up", Slots: 20_000})
		}
		return list, err
	})
	answer("/v1/load", func(r *http.Request) (any, error) { return g.cluster.Load(r.Context()) })
	answer("/v1/classes", func(r *http.Request) (any, error) { return g.cluster.Classes(r.Context()) })
	answer("/v1/heat", func(r *http.Request) (any, error) { return g.cluster.Heat(r.Context()) })
	answer("/v1/repair", func(*http.Request) (any, error) { return api.RepairStatus{}, nil })
	answer("/v1/scrub", func(*http.Request) (any, error) { return api.Scrub{}, nil })
	answer("/v1/scrub/findings", func(*http.Request) (any, error) { return []api.ScrubFinding{}, nil })
	answer("/v1/objects", func(r *http.Request) (any, error) { return objects(r.URL.Query().Get("limit")) })
	return mux
}

// place puts a node into a rack of twenty.
func place(node *api.NodeStatus, i int) {
	node.Address = fmt.Sprintf("10.0.%d.%d:7481", i/20, i%20+1)
	node.Domain = fmt.Sprintf("rack-%02d", i/20)
}

// objects is a page of keys; there are more.
func objects(limit string) (api.ObjectList, error) {
	most := 1000
	if limit != "" {
		n, err := strconv.Atoi(limit)
		if err != nil {
			return api.ObjectList{}, fmt.Errorf("reading the limit: %w", err)
		}
		most = min(most, n)
	}
	var page api.ObjectList
	for i := range most {
		key := fmt.Sprintf("%s/2026/%02d/object-%06d", policyName(i/10), i%12+1, i)
		page.Objects = append(page.Objects, api.Object{
			Key: key, Key64: api.EncodeKey(key), Class: policyName(i / 10), Scheme: ladder[i%3], Size: int64(i+1) << 12, Modified: time.Unix(1_790_000_000, 0),
		})
		page.Next = api.EncodeKey(key)
	}
	return page, nil
}
