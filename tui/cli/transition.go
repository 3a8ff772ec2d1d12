package cli

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/client"
	"github.com/restripe/restripe/agent/stripe"
	"github.com/restripe/restripe/operator/words"
	"github.com/restripe/restripe/tui/cli/program"
	"github.com/restripe/restripe/tui/progress"
)

func transitionCommand(s *session) *cobra.Command {
	return program.Family(&cobra.Command{
		Use: "transition", Aliases: []string{"transitions", "tr"}, Short: "Take objects from one code to another, in place",
	}, transitionStart(s), transitionList(s), transitionShow(s), transitionPause(s), transitionResume(s), transitionCancel(s))
}

// addressed registers --key, --prefix and --class and returns the selector they make.
func addressed(command *cobra.Command) func() (api.Selector, error) {
	var key, prefix, class string
	flags := command.Flags()
	flags.StringVar(&class, "class", "", "every object of this class")
	flags.StringVar(&prefix, "prefix", "", "every object whose key begins with this")
	flags.StringVar(&key, "key", "", "this object alone")
	return func() (api.Selector, error) {
		var chosen api.Selector
		n := 0
		if flags.Changed("class") {
			chosen.Class, n = class, n+1
		}
		if flags.Changed("prefix") {
			encoded := api.EncodeKey(prefix)
			chosen.Prefix64, n = &encoded, n+1
		}
		if flags.Changed("key") {
			chosen.Key64, n = api.EncodeKey(key), n+1
		}
		if n != 1 && (n > 0 || flags.Lookup("into") == nil || !flags.Changed("into")) {
			return chosen, program.Misuse(command, "say which objects: exactly one of --class, --prefix and --key")
		}
		return chosen, nil
	}
}

func transitionStart(s *session) *cobra.Command {
	var request api.TransitionRequest
	var rate string
	var wait, dry bool
	command := &cobra.Command{
		Use: "start --to SCHEME --class C|--prefix P|--key K", Short: "Start a transition",
		Example: "  restripe transition start --to 'rs(12,2)' --class default --wait\n" +
			"  restripe transition start --to 'rep(3)' --prefix hot/ --rate 50MiB/s\n" +
			"  restripe transition start --into media --class default\n" +
			"  restripe transition start --into media --dry-run",
		Args: cobra.NoArgs,
	}
	selector := addressed(command)
	format := outputFlag(command, "table", "json", "yaml", "name")
	flags := command.Flags()
	flags.StringVar(&request.To, "to", "", "scheme to reach, on the ladder of the objects' class (required)")
	flags.StringVar(&request.Into, "into", "", "take objects into this class whose keys belong to it and that are of another one, or of --class")
	flags.StringVar(&request.Planner, "planner", "", "planner: restripe, or a baseline to compare with")
	flags.StringVar(&request.Objective, "objective", "", "what to keep least: network, reads or bottleneck (default network)")
	flags.StringVar(&request.Proxy, "proxy", "", "node that plays the proxy of a baseline planner")
	flags.StringVar(&rate, "rate", "", "limit on bytes read, sent and written together, such as 50MiB/s")
	flags.BoolVar(&wait, "wait", false, "stay and show progress until it ends; exit code 1 unless it is done")
	flags.BoolVar(&dry, "dry-run", false, "start nothing; show what it would take, which is known of classes alone")
	command.MarkFlagsMutuallyExclusive("wait", "dry-run")
	completePlans(command)
	command.RunE = func(command *cobra.Command, _ []string) error {
		if (request.To == "") == (request.Into == "") {
			return program.Misuse(command, "say where to: --to SCHEME, for example --to 'rs(12,2)', or --into CLASS")
		}
		var err error
		if request.To != "" {
			scheme, err := stripe.ParseScheme(request.To)
			if err != nil {
				return program.Misuse(command, "--to: %w", err)
			}
			request.To = scheme.String()
		}
		if request.Selector, err = selector(); err != nil {
			return err
		}
		if request.BytesPerSecond, err = parseRate(rate); err != nil {
			return program.Misuse(command, "--rate: %w", err)
		}
		return s.withClient(func(c *client.Client) error {
			if dry {
				estimate, err := c.Estimate(command.Context(), request)
				if err != nil {
					return fmt.Errorf("estimating a transition to %s: %w", cmp.Or(request.To, "class "+request.Into), err)
				}
				return s.showEstimate(format, &request, &estimate)
			}
			t, err := c.StartTransition(command.Context(), request)
			if err != nil {
				return fmt.Errorf("starting a transition to %s: %w", cmp.Or(request.To, "class "+request.Into), err)
			}
			if wait {
				return s.follow(command, c, t.ID, format)
			}
			if format.chosen == "table" {
				return program.WriteLines(s.Out, []string{"transition " + t.ID + " started",
					"Watch it with `restripe transition show " + t.ID + " --watch`."})
			}
			return s.show(format, listing{value: t, names: []string{t.ID}})
		})
	}
	return command
}

// showEstimate shows what a transition would take.
func (s *session) showEstimate(format *formatValue, request *api.TransitionRequest, e *api.Estimate) error {
	if format.chosen == "json" || format.chosen == "yaml" {
		return s.show(format, listing{value: e})
	}
	copies := fmt.Sprintf("read %s, send %s and write %s", words.Bytes(e.BytesRead), words.Bytes(e.BytesSent), words.Bytes(e.BytesWritten))
	var lines []string
	switch {
	case request.Into != "" && e.Objects == 0:
		lines = append(lines, "No object would come into class "+request.Into+".")
	case request.Into != "":
		lines = append(lines, fmt.Sprintf("Would take %s of %s into class %s: %d by their records alone, %d by copies.",
			words.Count(e.Objects, "object"), words.Bytes(e.Bytes), request.Into, e.Objects-e.ObjectsCopied, e.ObjectsCopied))
		if e.ObjectsCopied > 0 {
			lines = append(lines, fmt.Sprintf("The copies, out of %s that objects share which stay, would %s.",
				words.Count(e.GroupsCopied, "group"), copies))
		}
	case e.Groups == 0:
		lines = append(lines, "No group would be taken to "+request.To+".")
	default:
		ways := fmt.Sprintf("%d in place", e.Groups-e.GroupsReshaped-e.GroupsCopied)
		if e.GroupsReshaped > 0 {
			ways += fmt.Sprintf(", %d by columns of others", e.GroupsReshaped)
		}
		lines = append(lines, fmt.Sprintf("Would take %s of %s to %s: %s, %d by copies.", words.Count(e.Groups, "group"),
			words.Bytes(e.Bytes), request.To, ways, e.GroupsCopied), "That would "+copies+".",
			fmt.Sprintf("They have %s in stores now, and %s afterwards.", words.Bytes(e.StoredBefore), words.Bytes(e.StoredAfter)))
	}
	return program.WriteLines(s.Out, lines)
}

func moveCommand(s *session) *cobra.Command {
	var wait bool
	command := &cobra.Command{
		Use: "move KEY SCHEME", Aliases: []string{"mv"}, Short: "Take one object to another scheme",
		Example: "  restripe move photos/a.jpg 'rs(4,2)'",
		Args:    cobra.ExactArgs(2),
	}
	format := outputFlag(command, "table", "json", "yaml", "name")
	command.Flags().BoolVar(&wait, "wait", true, "stay until it ends")
	command.RunE = func(command *cobra.Command, arguments []string) error {
		scheme, err := stripe.ParseScheme(arguments[1])
		if err != nil {
			return program.Misuse(command, "%w", err)
		}
		return s.withClient(func(c *client.Client) error {
			t, err := c.Move(command.Context(), arguments[0], scheme.String())
			if err != nil {
				return fmt.Errorf("moving %q to %s: %w", arguments[0], scheme, err)
			}
			if wait {
				return s.follow(command, c, t.ID, format)
			}
			return s.show(format, transitionListing([]api.Transition{t}, t))
		})
	}
	return command
}

var transitionColumns = []column{
	{title: "ID"}, {title: "OBJECTS"}, {title: "TO"}, {title: "STATE"}, {title: "DONE", right: true}, {title: "GROUPS", right: true},
	{title: "SENT", right: true}, {title: "LEFT", right: true}, {title: "AGE", right: true},
	{title: "PLANNER", wide: true}, {title: "OBJECTIVE", wide: true}, {title: "PREDICTED", wide: true, right: true},
	{title: "REWRITTEN", wide: true, right: true}, {title: "ATTEMPTS", wide: true, right: true}, {title: "LIMIT", wide: true, right: true},
	{title: "ERROR", wide: true},
}

func transitionListing(list []api.Transition, value any) listing {
	l := listing{value: value, columns: transitionColumns, empty: "There were no transitions. Start one with `restripe transition start`."}
	now := time.Now()
	for _, t := range list {
		left := "-"
		if t.State == api.TransitionRunning {
			left = words.Left(t.ETASeconds)
		}
		l.names = append(l.names, t.ID)
		l.rows = append(l.rows, []string{
			t.ID, selectorText(&t), targetText(&t), string(t.State), words.Share(t.BytesDone, t.BytesTotal),
			words.Number(t.GroupsDone) + "/" + words.Number(t.GroupsTotal), words.Bytes(t.Measured.BytesSent), left, words.About(now.Sub(t.Started)),
			t.Planner, t.Objective, words.Bytes(t.Predicted.BytesSent), words.Number(t.ObjectsRewritten), words.Number(t.Attempts),
			words.Limit(t.BytesPerSecond), t.Error,
		})
	}
	return l
}

// targetText says where a transition takes objects.
func targetText(t *api.Transition) string {
	if t.Into != "" {
		return "class " + t.Into
	}
	return t.To
}

// selectorText says which objects a transition covers.
func selectorText(t *api.Transition) string {
	selector := &t.Selector
	decode := func(text string) string {
		key, err := api.DecodeKey(text)
		if err != nil {
			return text
		}
		return fmt.Sprintf("%q", key)
	}
	switch {
	case t.Into != "" && selector.Class == "":
		return "other classes"
	case selector.Class != "":
		return "class " + selector.Class
	case selector.Prefix64 != nil && *selector.Prefix64 == "":
		return "all"
	case selector.Prefix64 != nil:
		return "prefix " + decode(*selector.Prefix64)
	}
	return "key " + decode(selector.Key64)
}

func transitionList(s *session) *cobra.Command {
	command := &cobra.Command{Use: "list", Aliases: []string{"ls"}, Short: "List transitions", Args: cobra.NoArgs}
	format := outputFlag(command)
	command.RunE = func(command *cobra.Command, _ []string) error {
		return s.withClient(func(c *client.Client) error {
			list, err := c.Transitions(command.Context())
			if err != nil {
				return err
			}
			return s.show(format, transitionListing(list, list))
		})
	}
	return command
}

func transitionShow(s *session) *cobra.Command {
	var watch bool
	command := &cobra.Command{Use: "show ID", Short: "Show one transition: progress, cost predicted and measured", Args: cobra.ExactArgs(1)}
	format := outputFlag(command, "table", "json", "yaml")
	command.Flags().BoolVarP(&watch, "watch", "w", false, "stay and show progress until it ends")
	command.RunE = func(command *cobra.Command, arguments []string) error {
		return s.withClient(func(c *client.Client) error {
			if watch {
				return s.follow(command, c, arguments[0], format)
			}
			t, err := c.Transition(command.Context(), arguments[0])
			if err != nil {
				return err
			}
			if format.chosen != "table" {
				return s.show(format, listing{value: t})
			}
			return program.WriteLines(s.Out, transitionLines(t))
		})
	}
	return command
}

func transitionPause(s *session) *cobra.Command {
	return s.transitionAction("pause ID", "Stop after the groups in work, until resumed", func(command *cobra.Command, c *client.Client, id string) (api.Transition, error) {
		return c.Pause(command.Context(), id)
	})
}

func transitionCancel(s *session) *cobra.Command {
	return s.transitionAction("cancel ID", "End a transition; groups already taken over stay as they are", func(command *cobra.Command, c *client.Client, id string) (api.Transition, error) {
		return c.Cancel(command.Context(), id)
	})
}

func transitionResume(s *session) *cobra.Command {
	var rate string
	command := s.transitionAction("resume ID", "Go on with a paused transition", func(command *cobra.Command, c *client.Client, id string) (api.Transition, error) {
		var limit *int64
		if command.Flags().Changed("rate") {
			bytesPerSecond, err := parseRate(rate)
			if err != nil {
				return api.Transition{}, program.Misuse(command, "--rate: %w", err)
			}
			limit = &bytesPerSecond
		}
		return c.Resume(command.Context(), id, limit)
	})
	command.Flags().StringVar(&rate, "rate", "", "new limit, such as 50MiB/s, or unlimited (default: as before)")
	return command
}

func (s *session) transitionAction(use, short string, act func(*cobra.Command, *client.Client, string) (api.Transition, error)) *cobra.Command {
	command := &cobra.Command{Use: use, Short: short, Args: cobra.ExactArgs(1)}
	command.RunE = func(command *cobra.Command, arguments []string) error {
		return s.withClient(func(c *client.Client) error {
			t, err := act(command, c, arguments[0])
			if err != nil {
				return err
			}
			return program.WriteLines(s.Out, []string{"transition " + t.ID + " is " + string(t.State)})
		})
	}
	return command
}

// errNotDone is the end of a transition that was waited for and did not reach its scheme.
var errNotDone = errors.New("the transition did not complete")

// follow shows the progress of a transition until it ends.
func (s *session) follow(command *cobra.Command, c *client.Client, id string, format *formatValue) error {
	m := progress.New(s.Messages)
	last, err := c.Watch(command.Context(), id, func(t api.Transition) error {
		m.Show(time.Now(), func() string { return transitionLine(t) })
		return nil
	})
	m.Clear()
	if err != nil {
		return err
	}
	if format.chosen == "table" {
		err = program.WriteLines(s.Out, transitionLines(last))
	} else {
		err = s.show(format, listing{value: last, names: []string{last.ID}})
	}
	if err == nil && last.State != api.TransitionDone {
		err = fmt.Errorf("%w: %s is %s", errNotDone, last.ID, last.State)
		if last.Error != "" {
			err = fmt.Errorf("%w: %s", err, last.Error)
		}
	}
	return err
}

// transitionLine is the one-line form that follow draws.
func transitionLine(t api.Transition) string {
	line := fmt.Sprintf("%s to %s %s %5s  %s of %s groups  %s sent", selectorText(&t), targetText(&t), progress.Bar(t.BytesDone, t.BytesTotal),
		words.Share(t.BytesDone, t.BytesTotal), words.Number(t.GroupsDone), words.Number(t.GroupsTotal), words.Bytes(t.Measured.BytesSent))
	if t.State != api.TransitionRunning {
		return line + "  " + string(t.State)
	}
	return line + "  " + words.Left(t.ETASeconds) + " left"
}

// transitionLines is the long form: the run, then its traffic next to what other ways would have sent.
func transitionLines(t api.Transition) []string {
	lines := []string{
		"transition  " + t.ID,
		"objects     " + selectorText(&t),
		"to          " + targetText(&t),
		fmt.Sprintf("planner     %s, least %s", t.Planner, t.Objective),
		"state       " + string(t.State),
		fmt.Sprintf("done        %s %s of %s in %s of %s groups, %s skipped", progress.Bar(t.BytesDone, t.BytesTotal), words.Bytes(t.BytesDone), words.Bytes(t.BytesTotal),
			words.Number(t.GroupsDone), words.Number(t.GroupsTotal), words.Number(t.GroupsSkipped)),
		"time        " + words.Span(words.Seconds(t.ElapsedSeconds)),
	}
	if t.State == api.TransitionRunning {
		lines = append(lines, "left        "+words.Left(t.ETASeconds))
	}
	if t.Error != "" {
		lines = append(lines, "error       "+t.Error)
	}
	if t.GroupsOffLadder > 0 {
		lines = append(lines, fmt.Sprintf("ladder      %s of another ladder come under that of the class", words.Count(t.GroupsOffLadder, "group")))
	}
	if t.GroupsReshaped > 0 {
		lines = append(lines, fmt.Sprintf("reshaped    %s by columns of others", words.Count(t.GroupsReshaped, "group")))
	}
	if t.ObjectsRewritten > 0 {
		lines = append(lines, fmt.Sprintf("rewritten   %s of %s through the gateway", words.Count(t.ObjectsRewritten, "object"), words.Bytes(t.BytesRewritten)))
	}
	if t.BytesPerSecond > 0 {
		lines = append(lines, "limit       "+words.Limit(t.BytesPerSecond))
	}
	row := func(name string, predicted, measured, predictedBytes, measuredBytes int64) []string {
		return []string{name, words.Number(predicted), words.Number(measured), words.Bytes(predictedBytes), words.Bytes(measuredBytes)}
	}
	p, m := t.Predicted, t.Measured
	lines = append(lines, "")
	lines = append(lines, tableLines([]column{
		{title: "BLOCKS"}, {title: "PREDICTED", right: true}, {title: "MEASURED", right: true}, {title: "BYTES PREDICTED", right: true}, {title: "MEASURED", right: true},
	}, [][]string{
		row("read", p.BlocksRead, m.BlocksRead, p.BytesRead, m.BytesRead),
		row("sent", p.BlocksSent, m.BlocksSent, p.BytesSent, m.BytesSent),
		row("written", p.BlocksWritten, m.BlocksWritten, p.BytesWritten, m.BytesWritten),
	}, true)...)
	if len(t.Baselines) > 0 {
		lines = append(lines, "", "Other ways would have sent:")
		for _, name := range sortedKeys(t.Baselines) {
			lines = append(lines, fmt.Sprintf("  %-12s %s", name, words.Bytes(t.Baselines[name])))
		}
	}
	return lines
}
