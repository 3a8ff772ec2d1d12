package gateway

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/member"
	"github.com/restripe/restripe/agent/store"
	"github.com/restripe/restripe/agent/wire"
)

// view shows the cluster as this gateway sees it: every gateway shows all of it.
type view struct{ gateway *Gateway }

// viewPatience bounds what figures wait for the catalog; they then lack what is counted.
const viewPatience = 5 * time.Second

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

var (
	buildInfo = describe("restripe_build_info", "1, for the release of the gateway's program.", "release")
	nodeUp    = describe("restripe_node_up", "1 if the agent of a node answers and its store serves, as this gateway sees it, else 0.",
		"node", "domain")
	nodeState = describe("restripe_node_state", "1 for the state that a node is in: up, suspect, down, out or draining.", "node", "state")
	nodeUsed  = describe("restripe_node_used_bytes", "Bytes that the store of a node says are used.", "node")
	nodeRoom  = describe("restripe_node_capacity_bytes", "Bytes that the store of a node can hold; absent where it does not know.", "node")
	nodeFault = describe("restripe_node_problem", "1 where a node does not serve, by why: unreachable, store (its store does not answer), "+
		"refused (the agent answers and is not the node's, or of the cluster), other.", "node", "problem")
	nodeContents = describe("restripe_node_contents_replaced_total",
		"Times that the store of a node was found to have other contents than the catalog knew, as it was emptied, exchanged or put back.",
		"node")
	nodeRefusals = describe("restripe_node_refusal", "1 where a node has something against a gateway: catalog (it does not obey this one), "+
		"newcomer (not yet), copy (it has expelled one with a copy of the catalog).", "node", "refusal")
	catalogWritten = describe("restripe_catalog_written_timestamp_seconds",
		"When this gateway last wrote to the catalog, which it does every few seconds; 0 before the first time.")
	catalogBytes = describe("restripe_catalog_bytes", "Bytes that the engine of the catalog has for its records.")
	catalogLimit = describe("restripe_catalog_limit_bytes",
		"Bytes that the engine of the catalog may have; absent where it knows no limit.")
	catalogRecords = describe("restripe_catalog_records", "Records of the catalog, about; absent where counting would take long.")
	catalogRetries = describe("restripe_catalog_retries_total", "Times that the engine of the catalog was asked again, by why: "+
		"serialization, lock, connection (PostgreSQL), conflict, unavailable (etcd); absent for others, which are not asked again.", "reason")
	replicaUp = describe("restripe_catalog_replica_up",
		"1 if a member of etcd answers, or a replica of Redis is sent what is written, else 0; 1 for each standby of PostgreSQL that is "+
			"connected.", "replica")
	replicaBytes = describe("restripe_catalog_replica_lag_bytes", "Bytes of the log of PostgreSQL that a standby does not have on its disk, "+
		"or of that of Redis that a replica has not received.", "replica")
	replicaEntries = describe("restripe_catalog_replica_lag_entries", "Entries of the log of etcd that a member has not applied.", "replica")
	deadAtMost     = describe("restripe_dead_at_most_ratio",
		"Bytes that may be dead in groups of small objects for one that lives, by class; absent where it is never compacted.", "class")
	unproven = describe("restripe_verification_failures_total",
		"Times that blocks which were staged did not hold the equations of their code, so that they were not committed.")

	popularityBytes = describe("restripe_popularity_bytes",
		"Memory of the gateway in which it counts how often keys of small objects are put and read; 0 before the first.")

	objectCounts  = describe("restripe_objects", "Objects, by class.", "class")
	objectBytes   = describe("restripe_object_bytes", "Bytes of objects, by class.", "class")
	earlierCounts = describe("restripe_earlier_versions", "Earlier versions of objects that are kept, by class.", "class")
	earlierBytes  = describe("restripe_earlier_version_bytes", "Bytes of earlier versions of objects, by class.", "class")
	storedBytes   = describe("restripe_stored_bytes", "Bytes of cells and parities that objects take, by class.", "class")
	groupCounts   = describe("restripe_groups", "Groups, by class and scheme.", "class", "scheme")
	notWhole      = describe("restripe_groups_not_whole", "Groups that lack blocks, by class.", "class")
	canLose       = describe("restripe_losable_nodes", "Nodes that every object survives the loss of now; absent with nothing stored.")
	graves        = describe("restripe_dead_blocks", "Dead blocks that wait for their delete.")
	attempts      = describe("restripe_attempts_active", "Writes, transitions and repairs of groups that are under way.")
	moveDone      = describe("restripe_transition_groups_done", "Groups that a transition which has not ended has dealt with.",
		"transition", "to", "state")
	moveTotal = describe("restripe_transition_groups", "Groups that a transition which has not ended has found so far.",
		"transition", "to", "state")

	viewMetrics = []*prometheus.Desc{
		buildInfo, nodeUp, nodeState, nodeUsed, nodeRoom, nodeFault, nodeContents, nodeRefusals, catalogWritten, catalogBytes, catalogLimit,
		catalogRecords, catalogRetries, replicaUp, replicaBytes, replicaEntries, deadAtMost, unproven, popularityBytes,
		objectCounts, objectBytes, earlierCounts, earlierBytes,
		storedBytes, groupCounts, notWhole, canLose, graves, attempts, moveDone, moveTotal,
	}
)

// Describe implements prometheus.Collector.
func (v view) Describe(descriptions chan<- *prometheus.Desc) {
	for _, description := range viewMetrics {
		descriptions <- description
	}
}

// Collect implements prometheus.Collector.
func (v view) Collect(metrics chan<- prometheus.Metric) {
	gauge := func(description *prometheus.Desc, value float64, labels ...string) {
		metrics <- prometheus.MustNewConstMetric(description, prometheus.GaugeValue, value, labels...)
	}
	counter := func(description *prometheus.Desc, value int64, labels ...string) {
		metrics <- prometheus.MustNewConstMetric(description, prometheus.CounterValue, float64(value), labels...)
	}
	g := v.gateway
	gauge(buildInfo, 1, g.options.Release)
	for _, target := range g.agents.All() {
		id := string(target.Node.ID)
		trusted, problem, _ := target.State()
		gauge(nodeUp, truth(trusted), id, member.Domain(target.Node))
		if !trusted {
			gauge(nodeFault, 1, id, problemOf(problem))
		}
		counter(nodeContents, target.Replaced.Load(), id)
	}
	for _, node := range g.agents.NodeStatus() {
		id := string(node.ID)
		gauge(nodeState, 1, id, node.State)
		gauge(nodeUsed, float64(node.UsedBytes), id)
		if node.CapacityBytes > 0 {
			gauge(nodeRoom, float64(node.CapacityBytes), id)
		}
	}
	for _, refusal := range g.Refusals() {
		gauge(nodeRefusals, 1, string(refusal.Node), kindOf(refusal))
	}
	for _, class := range g.Registry.All() {
		if class.DeadAtMost < api.NeverCompact {
			gauge(deadAtMost, float64(class.DeadAtMost)/100, class.Name)
		}
	}
	written := 0.0
	if at := member.Wrote(g.agents); !at.IsZero() {
		written = float64(at.UnixMilli()) / 1000
	}
	gauge(catalogWritten, written)
	counter(unproven, g.groups.Unproven.Load())
	gauge(popularityBytes, float64(g.Popularity.Bytes()))
	for reason, count := range g.catalog.Raw().Retries() {
		counter(catalogRetries, count, reason)
	}
	ctx, cancel := context.WithTimeout(context.Background(), viewPatience)
	defer cancel()
	v.measured(ctx, gauge)
	v.replicated(ctx, gauge)
	v.counted(gauge)
}

// replicated shows how far those are behind that have copies of the catalog, if its engine answers.
func (v view) replicated(ctx context.Context, gauge func(description *prometheus.Desc, value float64, labels ...string)) {
	replicas, err := v.gateway.catalog.Raw().Replicas(ctx)
	if err != nil {
		v.gateway.log.Warn("figures lack the replicas of the catalog", "cause", err)
		return
	}
	for _, replica := range replicas {
		gauge(replicaUp, truth(replica.Up), replica.Name)
		if replica.LagBytes >= 0 {
			gauge(replicaBytes, float64(replica.LagBytes), replica.Name)
		}
		if replica.LagEntries >= 0 {
			gauge(replicaEntries, float64(replica.LagEntries), replica.Name)
		}
	}
}

// measured shows how much the catalog has, if its engine answers.
func (v view) measured(ctx context.Context, gauge func(description *prometheus.Desc, value float64, labels ...string)) {
	size, err := v.gateway.catalog.Raw().Size(ctx)
	if err != nil {
		v.gateway.log.Warn("figures lack the size of the catalog", "cause", err)
		return
	}
	gauge(catalogBytes, float64(size.Bytes))
	if size.Limit > 0 {
		gauge(catalogLimit, float64(size.Limit))
	}
	if size.Records >= 0 {
		gauge(catalogRecords, float64(size.Records))
	}
}

// counted shows what is counted of all records, if that is known by now.
func (v view) counted(gauge func(description *prometheus.Desc, value float64, labels ...string)) {
	g := v.gateway
	if g.counting() != nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), viewPatience)
	defer cancel()
	status, err := g.Status(ctx)
	if err != nil {
		g.log.Warn("figures lack what is counted", "cause", err)
		return
	}
	for _, class := range status.Classes {
		gauge(objectCounts, float64(class.Objects), class.Name)
		gauge(objectBytes, float64(class.Bytes), class.Name)
		gauge(earlierCounts, float64(class.Earlier), class.Name)
		gauge(earlierBytes, float64(class.Kept), class.Name)
		gauge(storedBytes, float64(class.Stored), class.Name)
		gauge(notWhole, float64(class.NotWhole), class.Name)
		for scheme, groups := range class.ByScheme {
			gauge(groupCounts, float64(groups), class.Name, scheme)
		}
	}
	if status.CanLose >= 0 {
		gauge(canLose, float64(status.CanLose))
	}
	gauge(graves, float64(status.Graves))
	gauge(attempts, float64(status.Active))
	for i := range status.Transitions {
		t := &status.Transitions[i]
		gauge(moveDone, float64(t.GroupsDone+t.GroupsSkipped), t.ID, t.To, string(t.State))
		gauge(moveTotal, float64(t.GroupsTotal), t.ID, t.To, string(t.State))
	}
}

func truth(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

// problemOf names why a node does not serve.
func problemOf(problem error) string {
	switch {
	case problem == nil || errors.Is(problem, wire.ErrUnreachable):
		return "unreachable"
	case errors.Is(problem, store.ErrDown):
		return "store"
	case errors.Is(problem, wire.ErrBadRequest) || errors.Is(problem, wire.ErrForbidden) || errors.Is(problem, api.ErrUnavailable):
		return "refused"
	}
	return "other"
}

func kindOf(refusal member.Refusal) string {
	switch {
	case refusal.Refused:
		return "catalog"
	case refusal.Newcomer:
		return "newcomer"
	}
	return "copy"
}
