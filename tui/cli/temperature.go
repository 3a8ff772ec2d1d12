package cli

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/client"
	"github.com/restripe/restripe/agent/heat/shadow"
	"github.com/restripe/restripe/agent/stripe"
	"github.com/restripe/restripe/operator/api/v1alpha1"
	"github.com/restripe/restripe/operator/decide"
	"github.com/restripe/restripe/operator/price"
	"github.com/restripe/restripe/operator/replay"
	"github.com/restripe/restripe/operator/words"
	"github.com/restripe/restripe/tui/cli/program"
)

func temperatureCommand(s *session) *cobra.Command {
	command := &cobra.Command{
		Use: "temperature CLASS", Short: "Show who chooses the steps of a class's groups, and what others would have cost",
		Long: "Show, of a class whose policy has temperature, which candidate leads and why, or that rules choose; what was paid since it is\n" +
			"counted; and what every candidate, and everything on one code, would have cost over the same time.",
		Example: "  restripe temperature media\n  restripe temperature replay requests.csv --policy media.yaml",
		Args:    cobra.ExactArgs(1),
	}
	where := s.serverFlags(command)
	format := outputFlag(command, "table", "json", "yaml")
	command.RunE = func(command *cobra.Command, arguments []string) error {
		server, err := s.apiServer(where)
		if err != nil {
			return err
		}
		policy, err := server.policyOfClass(command.Context(), arguments[0])
		if err != nil {
			return err
		}
		status := policy.Status.Temperature
		switch {
		case policy.Spec.Temperature == nil:
			return fmt.Errorf("policy %s has no temperature, so everything belongs under its default; give it `temperature: {}` to have "+
				"groups where they cost least", policy.Name)
		case status == nil:
			return fmt.Errorf("nothing is known of class %s yet; see `restripe describe policy %s`", arguments[0], policy.Name)
		}
		if format.chosen != "table" {
			return s.show(format, listing{value: status})
		}
		return program.WriteLines(s.Out, temperatureLines(arguments[0], status))
	}
	command.AddCommand(replayCommand(s))
	return command
}

// policyOfClass returns the policy that declares a class.
func (a *apiServer) policyOfClass(ctx context.Context, class string) (*v1alpha1.RedundancyPolicy, error) {
	var list v1alpha1.RedundancyPolicyList
	if err := a.List(ctx, &list); err != nil {
		return nil, a.explain(err)
	}
	var names []string
	for i := range list.Items {
		name := decide.ClassName(&list.Items[i])
		if name == class {
			return &list.Items[i], nil
		}
		names = append(names, name)
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("no policy declares class %s; there are no policies", class)
	}
	slices.Sort(names)
	return nil, fmt.Errorf("no policy declares class %s; there are policies of %s", class, strings.Join(names, ", "))
}

// temperatureLines show regret.
func temperatureLines(class string, status *v1alpha1.TemperatureStatus) []string {
	regret := price.RegretOf(status)
	lines := []string{
		fmt.Sprintf("class %s is led %s since %s:", class, leaderText(status.Leader), words.Time(status.Since.Time)), "  " + status.Reason,
	}
	if regret.Rules {
		lines = []string{fmt.Sprintf("class %s goes by the rules of its policy", class)}
	}
	if regret.Days == 0 {
		return append(lines, "candidates are compared once a day; nothing is known of what others would cost yet")
	}
	lines = append(lines, fmt.Sprintf("paid %s in the %s since %s; candidates were compared last at %s", price.Amount(regret.Paid),
		words.Span(days(regret.Days)), words.Time(status.CountedSince.Time), words.Time(status.LookedAt.Time)))
	if regret.Fixed != nil {
		lines = append(lines, savedText(regret.SavedPerMonth, regret.Fixed.Text))
	}
	rows := [][]string{{"what was done", price.Amount(regret.Paid), "1.00x", ""}}
	for _, way := range regret.Ways {
		mark := ""
		if way.Leads {
			mark = "leads"
		}
		rows = append(rows, []string{way.Text, price.Amount(way.Paid), ratioText(way.Paid, regret.Paid), mark})
	}
	return append(append(lines, ""), costTable(rows)...)
}

func costTable(rows [][]string) []string {
	return tableLines([]column{
		{title: "CHOOSING"}, {title: "WOULD HAVE COST", right: true}, {title: "OF WHAT WAS DONE", right: true}, {title: ""},
	}, rows, false)
}

// leaderText is a candidate after "led": "by use (...)", and "by everything on rep(3)".
func leaderText(leader string) string {
	if strings.HasPrefix(leader, "by ") {
		return leader
	}
	return "by " + leader
}

func savedText(perMonth float64, than string) string {
	if perMonth < 0 {
		return fmt.Sprintf("that is %s a month more than %s would", price.Amount(-perMonth), than)
	}
	return fmt.Sprintf("that is %s a month less than %s would", price.Amount(perMonth), than)
}

func ratioText(paid, of float64) string {
	if of == 0 {
		return "-"
	}
	return strconv.FormatFloat(paid/of, 'f', 2, 64) + "x"
}

func days(n float64) time.Duration {
	return time.Duration(n * 24 * float64(time.Hour)).Round(time.Hour)
}

func replayCommand(s *session) *cobra.Command {
	var policyFile, format string
	var over time.Duration
	var groupBytes int64
	command := &cobra.Command{
		Use: "replay FILE --policy FILE", Short: "Say what a policy would have cost with requests of the past, under every candidate",
		Long: "Replay a trace of requests at the prices and on the ladder of a policy, and say what temperature mode auto, every candidate\n" +
			"and everything on one code would have cost. Needs no server.\n" +
			"Formats: csv, with a first line of names and then time (seconds, or as 2026-01-31T12:00:00Z), object, bytes; objects, with\n" +
			"number, object and bytes between spaces, spread evenly over --over; disk, with a first line of names and then version,\n" +
			"seconds, operation, bytes, block of 512 bytes, in extents of 4 MiB. FILE - is standard input.",
		Example: "  restripe temperature replay requests.csv --policy media.yaml\n" +
			"  xzcat blocks.csv.xz | restripe temperature replay - --format disk --policy vm.cue --over 336h",
		Args: cobra.ExactArgs(1),
	}
	formats := slices.Sorted(maps.Keys(replay.Formats()))
	flags := command.Flags()
	flags.StringVar(&policyFile, "policy", "", "file with the policy (required)")
	flags.StringVar(&format, "format", "csv", "format of the trace: "+joinWords(formats))
	flags.DurationVar(&over, "over", 0, "stretch the trace over so long; 0: as its times say")
	flags.Int64Var(&groupBytes, "group-bytes", 0, "bytes of a group that reads and moves are priced for (default: the mean of the trace)")
	completeWords(command, "format", formats)
	output := outputFlag(command, "table", "json", "yaml")
	command.RunE = func(command *cobra.Command, arguments []string) error {
		parse, known := replay.Formats()[format]
		switch {
		case policyFile == "":
			return program.Misuse(command, "say on which ladder and at which prices: --policy FILE")
		case !known:
			return program.Misuse(command, "--format %q: want one of %s", format, strings.Join(formats, ", "))
		case over < 0 || groupBytes < 0:
			return program.Misuse(command, "--over and --group-bytes must not be negative")
		}
		policy, declaration, err := s.policyIn(policyFile)
		if err != nil {
			return err
		}
		trace, err := s.readTrace(arguments[0], parse, over)
		if err != nil {
			return err
		}
		if groupBytes == 0 {
			sum := int64(0)
			for _, bytes := range trace.Bytes {
				sum += bytes
			}
			groupBytes = max(1, sum/int64(len(trace.Bytes)))
		}
		table, err := price.TableOf(policy.Spec.Prices)
		if err != nil {
			return err
		}
		ladder := declaration.Class.Ladder
		rungs, err := table.Rungs(ladder, groupBytes)
		if err != nil {
			return err
		}
		out, err := replay.Run(trace, shadow.Prices(rungs))
		if err != nil {
			return err
		}
		shown := replayed(out, ladder, groupBytes)
		if output.chosen != "table" {
			return s.show(output, listing{value: shown})
		}
		return program.WriteLines(s.Out, shown.lines(trace.Name))
	}
	return command
}

// readTrace reads a trace from a file, or from standard input.
func (s *session) readTrace(path string, parse replay.Parse, over time.Duration) (*replay.Trace, error) {
	if path == standardInput {
		return replay.Read("standard input", s.In, parse, over)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the trace: %w", err)
	}
	return replay.Read(filepath.Base(path), bytes.NewReader(text), parse, over)
}

// policyIn returns the one policy in a file, with the codes that the file declares.
func (s *session) policyIn(path string) (*v1alpha1.RedundancyPolicy, *decide.Declaration, error) {
	objects, findings := s.readDeclared([]string{path}, nil)
	if wrong := findings.Errors(); len(wrong) > 0 {
		return nil, nil, fmt.Errorf("%s; `restripe lint %s` says more", wrong[0], path)
	}
	var found []*v1alpha1.RedundancyPolicy
	codes := decide.Schemes{}
	for _, object := range objects {
		switch value := object.Value.(type) {
		case *v1alpha1.RedundancyPolicy:
			found = append(found, value)
		case *v1alpha1.RedundancyScheme:
			if code, wrong := decide.Code(value.Spec); wrong == nil {
				codes[value.Name] = code
			}
		}
	}
	if len(found) != 1 {
		return nil, nil, fmt.Errorf("%s has %s; want one", path, words.Count(int64(len(found)), "policy"))
	}
	declaration, wrong := decide.Declare(found[0], codes, nil)
	if wrong != nil {
		return nil, nil, fmt.Errorf("policy %s: %w", found[0].Name, wrong)
	}
	return found[0], declaration, nil
}

// replayOutcome is what a replay says, as programs read it. Amounts are in the currency of the price table.
type replayOutcome struct {
	Days       float64      `json:"days"`
	Groups     int          `json:"groups"`
	Bytes      int64        `json:"bytes"`
	Requests   int          `json:"requests"`
	GroupBytes int64        `json:"groupBytes"`
	Auto       float64      `json:"auto"`
	Changes    []leadChange `json:"changes"`
	Candidates []replayWay  `json:"candidates"`
	Written    []replayWay  `json:"written"` // everything written on one code, and never moved
}

type leadChange struct {
	Day    float64 `json:"day"`
	Leader string  `json:"leader"`
}

type replayWay struct {
	Text string  `json:"text"`
	Cost float64 `json:"cost"`
}

func replayed(out *replay.Outcome, ladder stripe.Ladder, groupBytes int64) *replayOutcome {
	shown := &replayOutcome{
		Days: out.Days, Groups: out.Groups, Bytes: out.Bytes, Requests: out.Accesses, GroupBytes: groupBytes, Auto: price.Bytes(out.Auto),
		Changes: []leadChange{},
	}
	for _, change := range out.Changes {
		leader := decide.CandidateText(out.Candidates[change.Leader].Candidate, ladder)
		shown.Changes = append(shown.Changes, leadChange{change.At.Hours() / 24, leader})
	}
	for _, candidate := range out.Candidates {
		shown.Candidates = append(shown.Candidates, replayWay{decide.CandidateText(candidate.Candidate, ladder), price.Bytes(candidate.Cost)})
	}
	for rung, cost := range out.Written {
		shown.Written = append(shown.Written, replayWay{"everything written on " + ladder[rung].String(), price.Bytes(cost)})
	}
	return shown
}

func (r *replayOutcome) lines(name string) []string {
	lines := []string{fmt.Sprintf("%s: %s of %s (%s), %s, reads and moves priced for groups of %s", name,
		words.Count(int64(r.Requests), "request"), words.Count(int64(r.Groups), "object"), words.Bytes(r.Bytes), words.Span(days(r.Days)),
		words.Bytes(r.GroupBytes))}
	for _, change := range r.Changes {
		lines = append(lines, fmt.Sprintf("on day %.0f the lead went to: %s", change.Day, change.Leader))
	}
	rows := [][]string{{"auto", price.Amount(r.Auto), "1.00x"}}
	for _, way := range slices.Concat(r.Written, r.Candidates) {
		rows = append(rows, []string{way.Text, price.Amount(way.Cost), ratioText(way.Cost, r.Auto)})
	}
	columns := []column{{title: "CHOOSING"}, {title: "WOULD HAVE COST", right: true}, {title: "OF AUTO", right: true}}
	return append(append(lines, ""), tableLines(columns, rows, false)...)
}

// explainObject adds to the command that explains plans what explains objects: why the groups of a key are where they are.
func explainObject(s *session, explain *cobra.Command) *cobra.Command {
	where := s.serverFlags(explain)
	explain.Use = "explain (KEY | --from SCHEME --to SCHEME | --nines N --nodes N)"
	explain.Short = "Say why an object is where it is, what a transition would do, or which ladder is safe enough"
	explain.Example = "  restripe explain photos/2026/ada.jpg\n" + explain.Example
	explain.Args = cobra.MaximumNArgs(1)
	others := explain.RunE
	explain.RunE = func(command *cobra.Command, arguments []string) error {
		if len(arguments) == 0 {
			return others(command, arguments)
		}
		for _, name := range []string{"ladder", "from", "to", "columns", "planner", "mode", "objective", "nines", "nodes"} {
			if command.Flags().Changed(name) {
				return program.Misuse(command, "--%s is about no object; ask for one of them", name)
			}
		}
		return s.withClient(func(c *client.Client) error {
			stat, err := c.Stat(command.Context(), arguments[0])
			if err != nil {
				return err
			}
			classes, err := c.Classes(command.Context())
			if err != nil {
				return err
			}
			lines := []string{fmt.Sprintf("%s is of class %s: %s in %s", stat.Key, stat.Class, words.Bytes(stat.Size),
				words.Count(int64(len(stat.Groups)), "group"))}
			at := slices.IndexFunc(classes, func(c client.Class) bool { return c.Name == stat.Class })
			if at < 0 {
				return program.WriteLines(s.Out, append(lines, "no class of that name is declared any more, so nothing moves it"))
			}
			lines = append(lines, whyThere(&stat, &classes[at])...)
			return program.WriteLines(s.Out, append(lines, s.whoMoves(command.Context(), where, stat.Class)...))
		})
	}
	return explain
}

// whyThere says how groups are used, and what their steps cost at that.
func whyThere(stat *api.Stat, class *client.Class) []string {
	type place struct {
		scheme string
		bucket int
	}
	type held struct {
		groups, bytes int64
		heat          float64
	}
	found := map[place]*held{}
	var order []place
	for i := range stat.Groups {
		g := &stat.Groups[i]
		at := place{g.Scheme, api.HeatBucketOf(g.Heat)}
		if found[at] == nil {
			found[at], order = &held{}, append(order, at)
		}
		h := found[at]
		h.groups, h.heat, h.bytes = h.groups+1, h.heat+g.Heat, h.bytes+int64(g.CellBytes)*int64(g.Rows)*int64(g.Columns)
	}
	var lines []string
	for _, at := range order {
		h := found[at]
		mean, known := h.heat/float64(h.groups), "as counted"
		if class.Expected {
			known = "as is to be expected from all of the class"
		}
		lines = append(lines, fmt.Sprintf("  %s under %s (%s): used %s times a day, %s", words.Count(h.groups, "group"), at.scheme,
			words.Bytes(h.bytes), words.Accesses(mean), known))
		ladder, err := stripe.ParseLadder(class.Ladder)
		if class.Prices == nil || err != nil {
			continue
		}
		var costs []string
		for rung, cost := range price.MonthOf(class.Prices, mean, h.bytes) {
			costs = append(costs, fmt.Sprintf("%s under %s", price.Amount(cost), ladder[rung]))
		}
		lines = append(lines, "    used so for a month they cost "+strings.Join(costs, ", "))
	}
	return lines
}

// whoMoves says who decides where the groups of a class belong.
func (s *session) whoMoves(ctx context.Context, where *serverFlags, class string) []string {
	server, err := s.apiServer(where)
	if err != nil {
		return []string{"who decides is not known: " + err.Error()}
	}
	policy, err := server.policyOfClass(ctx, class)
	if err != nil {
		return []string{"who decides is not known: " + err.Error()}
	}
	switch pin := policy.Spec.Pin; {
	case pin != nil && time.Now().Before(pin.Until.Time):
		return []string{fmt.Sprintf("policy %s keeps all of it on %s until %s", policy.Name, pin.Scheme, words.Time(pin.Until.Time))}
	case policy.Spec.Temperature == nil:
		return []string{fmt.Sprintf("policy %s has no temperature: what was moved away from its default stays there", policy.Name)}
	case !policy.Spec.Temperature.Automatic():
		var rules []string
		for _, rule := range policy.Spec.Temperature.Rules {
			bounds := ""
			if rule.AtLeast != nil {
				bounds += " from " + rule.AtLeast.String()
			}
			if rule.Below != nil {
				bounds += " below " + rule.Below.String()
			}
			rules = append(rules, string(rule.Scheme)+bounds)
		}
		return []string{fmt.Sprintf("policy %s decides by rules, in uses a day: %s", policy.Name, strings.Join(rules, ", "))}
	case policy.Status.Temperature == nil:
		return []string{fmt.Sprintf("policy %s has groups where they cost least, and has not looked at them yet", policy.Name)}
	}
	status := policy.Status.Temperature
	return []string{
		fmt.Sprintf("policy %s has groups where they cost least; it is led %s since %s:", policy.Name, leaderText(status.Leader),
			words.Time(status.Since.Time)),
		"  " + status.Reason,
	}
}
