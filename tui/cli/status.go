package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/client"
	"github.com/restripe/restripe/operator/api/v1alpha1"
	"github.com/restripe/restripe/operator/words"
	"github.com/restripe/restripe/tui/cli/program"
	"github.com/restripe/restripe/tui/progress"
)

// sortedKeys returns the keys of m in order.
func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

func statusCommand(s *session) *cobra.Command {
	var watch bool
	var interval time.Duration
	command := &cobra.Command{Use: "status", Short: "Show the cluster at a glance", Args: cobra.NoArgs}
	format := outputFlag(command, "table", "wide", "json", "yaml")
	command.Flags().BoolVarP(&watch, "watch", "w", false, "show it again and again until interrupted")
	command.Flags().DurationVar(&interval, "interval", watchInterval, "time between two pictures of --watch")
	command.RunE = func(command *cobra.Command, _ []string) error {
		if interval < 100*time.Millisecond {
			return program.Misuse(command, "--interval %s: want at least 100ms", interval)
		}
		return s.withClient(func(c *client.Client) error {
			return watched(command.Context(), watch, interval, func() error {
				status, err := s.countedStatus(command.Context(), c)
				if err != nil {
					return err
				}
				return s.showStatus(status, format, watch)
			})
		})
	}
	return command
}

// countedStatus asks for a status, and shows how far the gateway is while it has not counted everything yet.
func (s *session) countedStatus(ctx context.Context, c *client.Client) (status api.Status, err error) {
	ctx, cancel := context.WithCancel(ctx)
	var asking sync.WaitGroup
	defer asking.Wait()
	defer cancel()
	asking.Go(func() {
		meter := progress.New(s.Messages)
		defer meter.Clear()
		ticker := time.NewTicker(time.Second)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case now := <-ticker.C:
				if brief, err := c.StatusBrief(ctx); err == nil && brief.Counting != nil {
					meter.Show(now, func() string { return countingText(brief.Counting, now) })
				}
			}
		}
	})
	return c.Status(ctx)
}

// countingText says how far a gateway is with counting.
func countingText(counting *api.Counting, now time.Time) string {
	return fmt.Sprintf("the gateway has been started and counts what is stored: %s and %s so far, in %s",
		words.Count(counting.Groups, "group"), words.Count(counting.Objects, "object"), now.Sub(counting.Since).Round(time.Second))
}

// clearScreen moves to the top of a terminal and clears it.
const clearScreen = "\x1b[H\x1b[2J"

func (s *session) showStatus(status api.Status, format *formatValue, again bool) error {
	if format.chosen == "json" || format.chosen == "yaml" {
		return s.show(format, listing{value: status})
	}
	lines := statusLines(status, format.chosen == "wide")
	if again && progress.IsTerminal(s.Out) {
		lines[0] = clearScreen + lines[0]
	}
	return program.WriteLines(s.Out, lines)
}

// statusLines answers "is my data safe?" first, then what it costs, what moves, and how the nodes are.
func statusLines(status api.Status, wide bool) []string {
	objects := words.Count(status.Objects, "object")
	if status.Earlier > 0 {
		objects += " and " + words.Count(status.Earlier, "earlier version")
	}
	lines := []string{safetyText(status), fmt.Sprintf("cluster %s, gateway %s: %s in %s; %s under way, %s waiting for deletion",
		status.Cluster, status.Gateway, objects, words.Count(status.Groups, "group"), words.Count(status.Active, "attempt"), words.Count(status.Graves, "dead block"))}
	if status.Objects > 0 {
		seen := "no scrub has looked at every block yet"
		if status.BlocksSeen != nil {
			seen = "a scrub has looked at every block since " + status.BlocksSeen.UTC().Format(time.DateTime) + " UTC"
		}
		records := "by the records"
		if status.CountedAt != nil {
			records += " as they were at " + status.CountedAt.UTC().Format(time.DateTime) + " UTC, what nodes have lost since taken for the worst"
		}
		lines = append(lines, records+", and what reads have found; "+seen)
	}
	if status.CatalogBehind != "" {
		lines = append([]string{"error: " + status.CatalogBehind}, lines...)
	}
	lines = append(lines, "")
	lines = append(lines, tableLines(classColumns, classRows(status.Classes), wide)...)
	if len(status.Transitions) > 0 {
		lines = append(lines, "")
		lines = append(lines, tableLines(transitionColumns, transitionListing(status.Transitions, nil).rows, wide)...)
	}
	if status.Balance != nil {
		lines = append(lines, "", "balance of nodes: "+balanceText(status.Balance))
	}
	var nodes [][]string
	var warnings []string
	for _, n := range slices.SortedFunc(slices.Values(status.Nodes), byName) {
		capacity := "-"
		if n.CapacityBytes > 0 {
			capacity = words.Bytes(n.CapacityBytes)
		}
		nodes = append(nodes, []string{string(n.ID), n.State, words.Bytes(n.UsedBytes), capacity, n.Domain, n.Address, n.Store, n.Release})
		for _, warning := range n.Warnings {
			warnings = append(warnings, fmt.Sprintf("warning: %s: %s", n.ID, warning))
		}
	}
	lines = append(lines, "")
	lines = append(lines, tableLines([]column{
		{title: "NODE"}, {title: "STATE"}, {title: "USED", right: true}, {title: "CAPACITY", right: true}, {title: "DOMAIN"},
		{title: "ADDRESS", wide: true}, {title: "STORE", wide: true}, {title: "RELEASE", wide: true},
	}, nodes, wide)...)
	if len(warnings) > 0 {
		lines = append(lines, "")
		lines = append(lines, warnings...)
	}
	return lines
}

// byName orders nodes as people count them: n2 before n10.
func byName(a, b api.NodeStatus) int {
	return cmp.Or(cmp.Compare(len(a.ID), len(b.ID)), cmp.Compare(a.ID, b.ID))
}

// safetyText says in one line what the stored objects survive now.
func safetyText(status api.Status) string {
	var safe string
	switch {
	case status.CanLose < 0:
		return "Nothing is stored yet. Store something with `restripe put FILE`."
	case status.CanLose == 0:
		safe = "Some objects survive no further loss of a node"
	case status.Objects == 1:
		safe = "The one object survives the loss of any " + words.Count(int64(status.CanLose), "node")
	default:
		safe = fmt.Sprintf("All %s survive the loss of any %s", words.Count(status.Objects, "object"), words.Count(int64(status.CanLose), "node"))
	}
	if status.NotWhole > 0 {
		safe += fmt.Sprintf("; %s not whole, `restripe repair` rebuilds them", words.Count(status.NotWhole, "group"))
	}
	return safe + "."
}

var classColumns = []column{
	{title: "CLASS"}, {title: "LADDER"}, {title: "OBJECTS", right: true}, {title: "BYTES", right: true}, {title: "STORED", right: true},
	{title: "DEAD", right: true}, {title: "OVERHEAD", right: true}, {title: "GROUPS"},
}

func classRows(classes []api.ClassStatus) [][]string {
	var rows [][]string
	for _, class := range classes {
		overhead := "-"
		if bytes := class.Bytes + class.Kept; bytes > 0 {
			overhead = strconv.FormatFloat(float64(class.Stored)/float64(bytes), 'f', 2, 64) + "x"
		}
		var groups []string
		for _, scheme := range sortedKeys(class.ByScheme) {
			groups = append(groups, words.Number(class.ByScheme[scheme])+" "+scheme)
		}
		if len(groups) == 0 {
			groups = []string{"-"}
		}
		dead := "-"
		if class.Dead != nil && *class.Dead > 0 {
			dead = words.Bytes(*class.Dead)
		}
		rows = append(rows, []string{
			class.Name, class.Ladder, words.Number(class.Objects), words.Bytes(class.Bytes), words.Bytes(class.Stored), dead, overhead,
			strings.Join(groups, ", "),
		})
	}
	return rows
}

// errFindings ends a doctor that found errors.
var errFindings = errors.New("the doctor found errors")

func doctorCommand(s *session) *cobra.Command {
	command := &cobra.Command{
		Use: "doctor", Short: "Look for what is wrong and say what to do about it",
		Long: "Look for what is wrong and say what to do about it. Exit code 1 if there is an error; warnings are no errors.",
		Args: cobra.NoArgs,
	}
	format := outputFlag(command)
	ceph := newCephDoctor(command)
	where := s.serverFlags(command)
	command.RunE = func(command *cobra.Command, _ []string) error {
		return s.withClient(func(c *client.Client) error {
			findings, err := c.Doctor(command.Context())
			if err != nil {
				return err
			}
			if findings, err = ceph.add(command.Context(), c, findings); err != nil {
				return err
			}
			return s.showDiagnosis(append(findings, s.declaredFindings(command.Context(), where)...), format)
		})
	}
	return command
}

// declaredFindings are what the gateways cannot know, where there is an API server that does: classes with objects that no
// policy manages.
func (s *session) declaredFindings(ctx context.Context, where *serverFlags) []api.Finding {
	unread := func(err error) []api.Finding {
		if errors.Is(err, errNoServer) {
			return nil
		}
		return []api.Finding{{Severity: "warning", Subject: "api server", Text: fmt.Sprintf("the declared objects were not looked at: %v", err)}}
	}
	server, err := s.apiServer(where)
	if err != nil {
		return unread(err)
	}
	objects, err := server.known(ctx)
	if err != nil {
		return unread(err)
	}
	var findings []api.Finding
	for _, object := range objects {
		backend, is := object.Value.(*v1alpha1.StorageBackend)
		if !is {
			continue
		}
		managed := meta.FindStatusCondition(backend.Status.Conditions, v1alpha1.ConditionManaged)
		if managed != nil && managed.Status == metav1.ConditionFalse {
			findings = append(findings, api.Finding{Severity: "warning", Subject: "backend " + backend.Name, Text: managed.Message})
		}
	}
	return findings
}

// showDiagnosis shows what a doctor found, and fails if some of it is an error.
func (s *session) showDiagnosis(findings []api.Finding, format *formatValue) error {
	l := listing{value: findings, empty: "Nothing was found.", columns: []column{{title: "SEVERITY"}, {title: "SUBJECT"}, {title: "FINDING"}, {title: "CURE"}}}
	failed := 0
	for _, f := range findings {
		if f.Severity == "error" {
			failed++
		}
		l.names = append(l.names, f.Subject)
		l.rows = append(l.rows, []string{f.Severity, f.Subject, f.Text, f.Cure})
	}
	if err := s.show(format, l); err != nil {
		return err
	}
	if failed > 0 {
		return fmt.Errorf("%w: %d", errFindings, failed)
	}
	return nil
}

func sweepCommand(s *session) *cobra.Command {
	command := &cobra.Command{
		Use: "sweep", Short: "Settle what was left undone and delete dead blocks now",
		Long: "Settle attempts that are past their deadline, free groups without objects, and delete dead and orphaned blocks now\n" +
			"rather than at the gateway's next round.\n\n" +
			"A store with more than 1000 orphans, or with more than 100 that are more than a twentieth of its blocks, is not swept:\n" +
			"so many are a sign that the records are not those of this store. Once you know that they may go, sweep that node\n" +
			"--beyond-brake.",
		Args: cobra.NoArgs,
	}
	format := outputFlag(command, "table", "json", "yaml")
	var request api.SweepRequest
	node := command.Flags().String("node", "", "search the store of this node alone for orphans")
	command.Flags().BoolVar(&request.BeyondBrake, "beyond-brake", false, "delete the orphans of --node however many they are")
	command.RunE = func(command *cobra.Command, _ []string) error {
		request.Node = block.NodeID(*node)
		return s.withClient(func(c *client.Client) error {
			r, err := c.Sweep(command.Context(), request)
			if err != nil {
				return err
			}
			return s.show(format, counts(r, []any{
				"objects expired", r.ObjectsExpired,
				"attempts settled", r.IntentsSettled, "attempts forgotten", r.IntentsForgotten, "groups freed", r.GroupsFreed,
				"dead blocks deleted", r.BlocksDeleted, "orphans deleted", r.OrphansDeleted, "orphans withheld", r.OrphansWithheld,
				"foreign blocks", r.Foreign, "blocks quarantined", r.Quarantined, "dead blocks left", r.GravesLeft, "nodes not searched", r.NodesUnsearched,
			}))
		})
	}
	return command
}

// counts lists pairs of a word and a number.
func counts(value any, pairs []any) listing {
	l := listing{value: value, columns: []column{{title: "WHAT"}, {title: "COUNT", right: true}}}
	for i := 0; i < len(pairs); i += 2 {
		l.rows = append(l.rows, []string{fmt.Sprint(pairs[i]), fmt.Sprint(pairs[i+1])})
	}
	return l
}
