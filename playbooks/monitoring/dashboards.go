package monitoring

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Dashboard is a page of panels for Grafana.
type Dashboard struct {
	Name, Title string
	Panels      []Panel
}

// Panel is one picture: a number, or lines over time.
type Panel struct {
	Title, About string
	Unit         string // of Grafana: short, bytes, Bps, s, percentunit, dateTimeFromNow
	Stat         bool   // the last value alone, as a number
	Stacked      bool
	Lines        []Line
}

// Line is what is drawn: an expression of Prometheus, and what each of its series is called.
type Line struct{ Expression, Legend string }

func lines(pairs ...string) (list []Line) {
	for i := 0; i < len(pairs); i += 2 {
		list = append(list, Line{Expression: pairs[i], Legend: pairs[i+1]})
	}
	return list
}

// fasterThan is how long a share of the requests for objects take at most, by method.
func fasterThan(share string) string {
	return "histogram_quantile(" + share +
		`, sum by (le, method) (rate(restripe_gateway_request_seconds_bucket{route=~".* /v1/objects/.*"}[5m])))`
}

// operationsFasterThan is how long a share of the operations of the catalog take at most.
func operationsFasterThan(share string) string {
	return "histogram_quantile(" + share + ", sum by (le, operation) (rate(restripe_catalog_operation_seconds_bucket[5m])))"
}

// Dashboards are those of the project. Every gateway shows the whole cluster, so that what concerns all of it is taken over all of them.
func Dashboards() []Dashboard {
	return []Dashboard{
		{Name: "fleet", Title: "Restripe: fleet", Panels: []Panel{
			{Title: "Nodes that serve", Unit: "short", Stat: true, Lines: lines("count(max by (node) (restripe_node_up) == 1)", "")},
			{Title: "Nodes that do not", Unit: "short", Stat: true,
				Lines: lines("count(max by (node) (restripe_node_up) == 0) or vector(0)", "")},
			{Title: "Nodes that may be lost", About: "Every object survives the loss of so many nodes now.", Unit: "short", Stat: true,
				Lines: lines("min(restripe_losable_nodes)", "")},
			{Title: "Groups that lack blocks", Unit: "short", Stat: true,
				Lines: lines("sum(max by (class) (restripe_groups_not_whole))", "")},
			{Title: "States of nodes", Unit: "short", Stacked: true,
				Lines: lines("sum by (state) (max by (node, state) (restripe_node_state))", "{{state}}")},
			{Title: "Groups that lack blocks, by class", Unit: "short",
				Lines: lines("max by (class) (restripe_groups_not_whole)", "{{class}}")},
			{Title: "Use of stores", Unit: "percentunit",
				Lines: lines("max by (node) (restripe_node_used_bytes / restripe_node_capacity_bytes)", "{{node}}")},
			{Title: "Repair", Unit: "Bps", Lines: lines("sum(rate(restripe_repaired_bytes_total[5m]))", "rebuilt",
				"sum(rate(restripe_repair_sent_bytes_total[5m]))", "sent between nodes")},
			{Title: "Scrub", Unit: "Bps", Lines: lines("sum(rate(restripe_scrub_read_bytes_total[5m]))", "read and checked",
				"sum(rate(restripe_scrub_network_bytes_total[5m]))", "over the network")},
			{Title: "What is wrong", About: "Found by scrubs, or before something was committed.", Unit: "short",
				Lines: lines("sum by (kind) (increase(restripe_scrub_findings_total[1h]))", "scrub: {{kind}}",
					"sum(increase(restripe_verification_failures_total[1h]))", "not committed")},
			{Title: "Blocks that no record names", Unit: "short",
				Lines: lines("sum by (kind) (max by (node, kind) (restripe_leftover_blocks))", "{{kind}}",
					"max(restripe_dead_blocks)", "dead")},
			{Title: "Dead space of small objects", About: "What deleted and overwritten ones leave in their groups.", Unit: "bytes",
				Lines: lines("max by (class) (restripe_dead_bytes)", "{{class}}")},
			{Title: "Dead share of small objects' groups", About: "Of the bytes of their data columns.", Unit: "percentunit",
				Lines: lines("max by (class) (restripe_dead_bytes / (restripe_packed_bytes > 0))", "{{class}}")},
			{Title: "Compaction", Unit: "Bps", Lines: lines("sum(rate(restripe_compaction_moved_bytes_total[5m]))", "moved",
				"sum(rate(restripe_compaction_freed_bytes_total[5m]))", "freed")},
			{Title: "Certificates expire", Unit: "dateTimeFromNow",
				Lines: lines("min by (identity) (restripe_certificate_expires_timestamp_seconds) * 1000", "{{identity}}")},
		}},
		{Name: "transitions", Title: "Restripe: transitions", Panels: []Panel{
			{Title: "Transitions that run", Unit: "short", Stat: true,
				Lines: lines(`count(max by (transition) (restripe_transition_groups{state="running"})) or vector(0)`, "")},
			{Title: "Groups left", Unit: "short", Stat: true,
				Lines: lines("sum(max by (transition) (restripe_transition_groups) - max by (transition) (restripe_transition_groups_done))"+
					" or vector(0)", "")},
			{Title: "Progress", Unit: "percentunit", Lines: lines(
				"max by (transition, to) (restripe_transition_groups_done) / max by (transition, to) (restripe_transition_groups)",
				"{{transition}} to {{to}}")},
			{Title: "Traffic of transitions", Unit: "Bps",
				Lines: lines("sum by (kind) (rate(restripe_transition_bytes_total[5m]))", "{{kind}}")},
			{Title: "Groups by scheme", Unit: "short", Stacked: true,
				Lines: lines("sum by (scheme) (max by (class, scheme) (restripe_groups))", "{{scheme}}")},
			{Title: "What is declared and not so", Unit: "short", Lines: lines(
				`sum by (condition, reason) (restripe_condition{condition=~"Stalled|Degraded|Paused|AwaitingApproval"})`, "{{condition}}: {{reason}}",
				`count by (reason) (restripe_condition{condition="Feasible"} == 0)`, "not feasible: {{reason}}")},
			{Title: "Clients meanwhile", About: "The slowest hundredth of the requests for objects.", Unit: "s", Lines: lines(
				fasterThan("0.99"), "{{method}}")},
		}},
		{Name: "data-path", Title: "Restripe: data path", Panels: []Panel{
			{Title: "Requests", Unit: "reqps", Lines: lines(
				`sum by (method) (rate(restripe_gateway_request_seconds_count{route=~".* /v1/objects/.*"}[5m]))`, "{{method}}")},
			{Title: "Refused and failed", Unit: "reqps", Lines: lines(
				`sum by (status) (rate(restripe_gateway_request_seconds_count{status=~"[45].."}[5m]))`, "{{status}}")},
			{Title: "Half of the requests are faster", Unit: "s", Lines: lines(
				fasterThan("0.5"), "{{method}}")},
			{Title: "All but a hundredth are faster", Unit: "s", Lines: lines(
				fasterThan("0.99"), "{{method}}")},
			{Title: "Reads that took another way", Unit: "ops",
				Lines: lines("sum(rate(restripe_gateway_degraded_reads_total[5m]))", "decoded, as a cell could not be read",
					"sum(rate(restripe_gateway_hedged_reads_total[5m]))", "asked of more nodes, as one was slow",
					"sum(rate(restripe_gateway_hedged_reads_won_total[5m]))", "of those, decoded before the slow one answered")},
			{Title: "Writes under way", Unit: "short", Lines: lines("max(restripe_attempts_active)", "attempts")},
			{Title: "Memory of gateways", Unit: "bytes", Lines: lines(
				"process_resident_memory_bytes and on (instance) restripe_build_info", "{{instance}}")},
			{Title: "Processors of gateways", Unit: "short", Lines: lines(
				"rate(process_cpu_seconds_total[5m]) and on (instance) restripe_build_info", "{{instance}}")},
			{Title: "Console calls", Unit: "reqps", Lines: lines("sum by (code) (rate(restripe_console_calls_total[5m]))", "{{code}}")},
			{Title: "Console: what does not answer", Unit: "s",
				Lines: lines("max by (source) (restripe_console_source_stale_seconds)", "{{source}}")},
		}},
		{Name: "catalog", Title: "Restripe: catalog", Panels: []Panel{
			{Title: "Operations", Unit: "ops",
				Lines: lines("sum by (operation) (rate(restripe_catalog_operation_seconds_count[5m]))", "{{operation}}")},
			{Title: "Done again", About: "Updates that somebody else was faster than, and operations without a clear answer.", Unit: "ops",
				Lines: lines(`sum by (operation, outcome) (rate(restripe_catalog_operation_seconds_count{outcome=~"conflict|error"}[5m]))`,
					"{{operation}}: {{outcome}}")},
			{Title: "Half of the operations are faster", Unit: "s", Lines: lines(operationsFasterThan("0.5"), "{{operation}}")},
			{Title: "All but a hundredth are faster", Unit: "s", Lines: lines(operationsFasterThan("0.99"), "{{operation}}")},
			{Title: "Time since the last write", Unit: "s",
				Lines: lines("time() - restripe_catalog_written_timestamp_seconds", "{{instance}}")},
			{Title: "Behind its nodes", About: "1 while nothing is deleted before a person has decided.", Unit: "short",
				Lines: lines("max(restripe_catalog_behind)", "behind")},
			{Title: "Size", Unit: "bytes",
				Lines: lines("max(restripe_catalog_bytes)", "has", "max(restripe_catalog_limit_bytes)", "may have")},
			{Title: "Records", Unit: "short", Lines: lines("max(restripe_catalog_records)", "records")},
			{Title: "Asked again", About: "By the engine, of its servers.", Unit: "ops",
				Lines: lines("sum by (reason) (rate(restripe_catalog_retries_total[5m]))", "{{reason}}")},
			{Title: "Copies that are missing", About: "Members of etcd that do not answer, and replicas of Redis that are not sent what is written.",
				Unit: "short", Lines: lines("count(max by (replica) (restripe_catalog_replica_up) == 0) or vector(0)", "missing")},
			{Title: "Behind, in bytes", About: "What a standby of PostgreSQL or a replica of Redis lacks.", Unit: "bytes",
				Lines: lines("max by (replica) (restripe_catalog_replica_lag_bytes)", "{{replica}}")},
			{Title: "Behind, in entries", About: "What a member of etcd has not applied.", Unit: "short",
				Lines: lines("max by (replica) (restripe_catalog_replica_lag_entries)", "{{replica}}")},
			{Title: "Puts in pieces", About: "Of objects of more groups than one update takes.", Unit: "short",
				Lines: lines("restripe_puts_in_pieces", "{{instance}}")},
			{Title: "Pieces", Unit: "ops", Lines: lines("sum(rate(restripe_pieces_committed_total[5m]))", "committed",
				"sum(rate(restripe_pieces_swept_total[5m]))", "swept")},
		}},
		{Name: "cost", Title: "Restripe: cost", Panels: []Panel{
			{Title: "Bytes of objects", Unit: "bytes", Stat: true, Lines: lines("sum(max by (class) (restripe_object_bytes))", "")},
			{Title: "Bytes stored", Unit: "bytes", Stat: true, Lines: lines("sum(max by (class) (restripe_stored_bytes))", "")},
			{Title: "Stored for each byte", Unit: "short", Stat: true, Lines: lines(
				"sum(max by (class) (restripe_stored_bytes)) / sum(max by (class) (restripe_object_bytes))", "")},
			{Title: "Spared by policies", About: "Beside keeping everything on the first step of its ladder.", Unit: "bytes", Stat: true,
				Lines: lines("sum(max by (policy) (restripe_policy_saved_bytes))", "")},
			{Title: "Stored for each byte, by class", Unit: "short", Lines: lines(
				"max by (class) (restripe_stored_bytes) / max by (class) (restripe_object_bytes)", "{{class}}")},
			{Title: "Bytes stored, by class", Unit: "bytes", Stacked: true,
				Lines: lines("max by (class) (restripe_stored_bytes)", "{{class}}")},
			{Title: "Objects, by class", Unit: "short", Stacked: true, Lines: lines("max by (class) (restripe_objects)", "{{class}}")},
			{Title: "Spared, by policy", Unit: "bytes", Lines: lines("max by (policy) (restripe_policy_saved_bytes)", "{{policy}}")},
			{Title: "What moving has cost", Unit: "bytes",
				Lines: lines("sum by (kind) (increase(restripe_transition_bytes_total[1d]))", "{{kind}} by transitions in a day",
					"sum(increase(restripe_repair_sent_bytes_total[1d]))", "sent by repairs in a day")},
		}},
	}
}

// The width of a page of Grafana, and the sizes of panels on it.
const (
	pageWidth             = 24
	statWidth, statHeight = 6, 4
	lineWidth, lineHeight = 12, 8
)

// JSON is the dashboard as Grafana imports it. Its data source is chosen on the page.
func (d *Dashboard) JSON() ([]byte, error) {
	type object = map[string]any
	source := object{"type": "prometheus", "uid": "${source}"}
	panels := []object{}
	x, y, height := 0, 0, 0
	for i, panel := range d.Panels {
		kind, wide, high := "timeseries", lineWidth, lineHeight
		custom := object{"fillOpacity": 10}
		if panel.Stacked {
			custom = object{"fillOpacity": 40, "stacking": object{"mode": "normal"}}
		}
		if panel.Stat {
			kind, wide, high = "stat", statWidth, statHeight
			custom = object{}
		}
		if x+wide > pageWidth || height != 0 && height != high {
			x, y = 0, y+height
		}
		targets := []object{}
		for j, line := range panel.Lines {
			targets = append(targets, object{
				"refId": string(rune('A' + j)), "expr": line.Expression, "legendFormat": line.Legend, "datasource": source,
				"instant": panel.Stat,
			})
		}
		panels = append(panels, object{
			"id": i + 1, "type": kind, "title": panel.Title, "description": panel.About, "datasource": source,
			"gridPos": object{"x": x, "y": y, "w": wide, "h": high}, "targets": targets,
			"fieldConfig": object{"defaults": object{"unit": panel.Unit, "custom": custom}, "overrides": []object{}},
		})
		x, height = x+wide, high
	}
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	err := encoder.Encode(object{
		"uid": "restripe-" + d.Name, "title": d.Title, "tags": []string{"restripe"}, "schemaVersion": 39, "version": 1, "editable": true,
		"refresh": "30s", "time": object{"from": "now-6h", "to": "now"}, "timezone": "",
		"annotations": object{"list": []object{}}, "panels": panels,
		"templating": object{"list": []object{{
			"name": "source", "label": "Data source", "type": "datasource", "query": "prometheus", "hide": 0,
		}}},
	})
	if err != nil {
		return nil, fmt.Errorf("writing the dashboard %s: %w", d.Name, err)
	}
	return b.Bytes(), nil
}
