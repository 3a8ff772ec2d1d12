package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/restripe/restripe/operator/api/v1alpha1"
	"github.com/restripe/restripe/operator/controller"
	"github.com/restripe/restripe/operator/decide"
	"github.com/restripe/restripe/operator/gateways"
	"github.com/restripe/restripe/operator/words"
	"github.com/restripe/restripe/tui/cli/program"
)

// errEnded refuses to steer a transition that has ended.
var errEnded = errors.New("the transition has ended")

// steering changes the spec of a transition. It returns what to say, and an error for a change that makes no sense.
type steering func(t *v1alpha1.Transition) (said string, err error)

// steerTries is how often a change is tried that somebody else's came before.
const steerTries = 5

// steer changes a Transition object, again if somebody else changes it meanwhile.
func (s *session) steer(ctx context.Context, server *apiServer, name string, steering steering) error {
	for try := 1; ; try++ {
		transition, err := server.transition(ctx, name)
		if err != nil {
			return err
		}
		before := transition.DeepCopy()
		said, err := steering(transition)
		if err != nil {
			return fmt.Errorf("transition/%s: %w", name, err)
		}
		err = server.change(ctx, before, transition)
		if apierrors.IsConflict(err) && try < steerTries {
			continue
		}
		if err != nil {
			return fmt.Errorf("transition/%s: %w", name, err)
		}
		return program.WriteLines(s.Out, []string{fmt.Sprintf("transition/%s %s", name, said)})
	}
}

// ended refuses transitions that have ended.
func ended(t *v1alpha1.Transition) error {
	if t.Status.CompletionTime == nil {
		return nil
	}
	return fmt.Errorf("%w (%s)", errEnded, strings.ToLower(t.Status.Summary.State))
}

func approve(t *v1alpha1.Transition) (string, error) {
	switch {
	case !t.Spec.NeedsApproval:
		return "needs no approval", nil
	case t.Spec.Approved:
		return "was approved already", nil
	case t.Spec.Cancelled:
		return "", errors.New("it was cancelled; the policy makes another if it is still wanted")
	}
	if err := ended(t); err != nil {
		return "", err
	}
	t.Spec.Approved, t.Spec.ApprovedBy = true, personName()
	if cost := t.Status.Cost; cost != nil {
		return fmt.Sprintf("approved: %s, %s", words.Count(cost.Groups, "group"), words.Bytes(cost.Bytes)), nil
	}
	return "approved", nil
}

// personName is who runs the program, as the operating system has it.
func personName() string {
	name := "uid " + strconv.Itoa(os.Getuid())
	if person, err := user.Current(); err == nil {
		name = person.Username
	}
	if host, err := os.Hostname(); err == nil {
		name += "@" + host
	}
	return name
}

func pause(t *v1alpha1.Transition) (string, error) {
	if err := ended(t); err != nil {
		return "", err
	}
	if t.Spec.Paused {
		return "was paused already", nil
	}
	t.Spec.Paused = true
	return "paused; groups under way are finished first, `restripe resume " + t.Name + "` goes on", nil
}

func resume(t *v1alpha1.Transition) (string, error) {
	if err := ended(t); err != nil {
		return "", err
	}
	if !t.Spec.Paused {
		return "was not paused", nil
	}
	t.Spec.Paused = false
	return "resumed", nil
}

func cancel(t *v1alpha1.Transition) (string, error) {
	if err := ended(t); err != nil {
		return "", err
	}
	if t.Spec.Cancelled {
		return "was cancelled already", nil
	}
	t.Spec.Cancelled = true
	return "cancelled; groups already moved stay where they are, `restripe rollback " + t.Name + "` takes them back", nil
}

// steerCommand makes the command of one steering, with the flags that say at which API server.
func steerCommand(s *session, use, short, long string, steering steering) (*cobra.Command, *serverFlags) {
	command := &cobra.Command{Use: use, Short: short, Long: long, Args: cobra.MinimumNArgs(1)}
	where := s.serverFlags(command)
	command.RunE = func(command *cobra.Command, names []string) error {
		server, err := s.apiServer(where)
		if err != nil {
			return err
		}
		var failed []error
		for _, name := range names {
			failed = append(failed, s.steer(command.Context(), server, strings.TrimPrefix(name, "transition/"), steering))
		}
		return errors.Join(failed...)
	}
	return command, where
}

const besideGateway = "\nThis is about Transition objects, which `restripe get transitions` lists. Transitions that were started at a gateway by hand\n" +
	"are under `restripe transition`."

func approveCommand(s *session) *cobra.Command {
	command, _ := steerCommand(s, "approve TRANSITION...", "Approve a transition that waits for a person",
		"Approve transitions that policies made and that wait for a person, as their approval asks."+besideGateway, approve)
	return command
}

func cancelCommand(s *session) *cobra.Command {
	command, _ := steerCommand(s, "cancel TRANSITION...", "End a transition for good; groups already moved stay",
		"End transitions for good. Groups already moved stay where they are; `restripe rollback` takes them back. The policy may make\n"+
			"another one; stop it first with `restripe pause policy/NAME` if that is not wanted."+besideGateway, cancel)
	return command
}

// policyPrefix marks a name as that of a policy, where names are those of transitions.
const policyPrefix = "policy/"

func pauseCommand(s *session) *cobra.Command {
	command, where := steerCommand(s, "pause TRANSITION|policy/NAME...", "Pause a transition, or hold a policy",
		"Pause transitions: groups under way are finished, and no more are begun until `restripe resume`. A policy is put on Hold: what\n"+
			"runs goes on, and nothing new is started."+besideGateway, pause)
	return holdable(s, command, where, v1alpha1.StopHold)
}

func resumeCommand(s *session) *cobra.Command {
	command, where := steerCommand(s, "resume TRANSITION|policy/NAME...", "Go on with a paused transition, or a policy on Hold",
		"Go on with paused transitions, and with policies on Hold."+besideGateway, resume)
	return holdable(s, command, where, v1alpha1.StopNone)
}

// holdable lets a steering command take policies as well, whose stopPolicy becomes stop.
func holdable(s *session, command *cobra.Command, where *serverFlags, stop v1alpha1.StopPolicy) *cobra.Command {
	steer := command.RunE
	command.RunE = func(command *cobra.Command, names []string) error {
		server, err := s.apiServer(where)
		if err != nil {
			return err
		}
		var transitions []string
		var failed []error
		for _, name := range names {
			policy, is := strings.CutPrefix(name, policyPrefix)
			if !is {
				transitions = append(transitions, name)
				continue
			}
			said, err := server.stopPolicy(command.Context(), policy, stop)
			if err == nil {
				err = program.WriteLines(s.Out, []string{said})
			}
			failed = append(failed, err)
		}
		if len(transitions) > 0 {
			failed = append(failed, steer(command, transitions))
		}
		return errors.Join(failed...)
	}
	return command
}

// stopPolicy sets the stopPolicy of a policy, taking it over from whoever set it, and returns what to say of it.
func (a *apiServer) stopPolicy(ctx context.Context, name string, stop v1alpha1.StopPolicy) (string, error) {
	var policy v1alpha1.RedundancyPolicy
	if err := a.read(ctx, kindNamed("policy"), name, &policy); err != nil {
		return "", err
	}
	before := policy.DeepCopy()
	policy.Spec.StopPolicy = stop
	if err := a.Patch(ctx, &policy, client.MergeFrom(before), client.FieldOwner(fieldOwner)); err != nil {
		return "", fmt.Errorf("policy/%s: %w", name, a.explain(err))
	}
	said := "on hold: what runs goes on, nothing new is started; `restripe resume policy/" + name + "` lifts it"
	if stop == v1alpha1.StopNone {
		said = "goes on"
	}
	return "policy/" + name + " " + said, nil
}

func rollbackCommand(s *session) *cobra.Command {
	command := &cobra.Command{
		Use: "rollback TRANSITION", Short: "Take a transition back, and hold its policy",
		Long: "Make the transition that takes another one back, from where that one went to where it came from. The other one is cancelled\n" +
			"if it has not ended, and its policy is put on Hold so that it does not undo this at once; `restripe resume policy/NAME` lifts\n" +
			"that. Everything under the other one's target that is used as often as what it moved is taken back, whoever brought it there.\n" +
			"Without --yes it only shows how much that is and what it costs. What the policy leaves to a person waits for\n" +
			"`restripe approve`." + besideGateway,
		Example: "  restripe rollback media-rs12-2-7\n  restripe rollback media-rs12-2-7 --yes",
		Args:    cobra.ExactArgs(1),
	}
	var reason string
	var yes bool
	command.Flags().BoolVar(&yes, "yes", false, "do it (default: only show what it costs)")
	command.Flags().StringVar(&reason, "reason", "", "why, in words")
	where := s.serverFlags(command)
	command.RunE = func(command *cobra.Command, names []string) error {
		server, err := s.apiServer(where)
		if err != nil {
			return err
		}
		return s.rollback(command.Context(), server, strings.TrimPrefix(names[0], "transition/"), reason, yes)
	}
	return command
}

func (s *session) rollback(ctx context.Context, server *apiServer, name, reason string, yes bool) error {
	original, err := server.transition(ctx, name)
	if err != nil {
		return err
	}
	if original.Spec.RollbackOf != "" {
		return fmt.Errorf("transition/%s takes %s back itself: cancel it, or lift the Hold of its policy", name, original.Spec.RollbackOf)
	}
	if reason == "" {
		reason = "takes back " + name
	}
	back := decide.Reverse(original, reason)
	world, err := server.world(ctx, nil)
	if err != nil {
		return err
	}
	policy, backend := world.policies[back.Spec.PolicyRef], world.backends[back.Spec.BackendRef]
	who, err := credentials()
	if err != nil {
		return err
	}
	foreseen, err := controller.Foresee(ctx, gateways.Dial(who), back, policy, backend, world.codes)
	if err != nil {
		return fmt.Errorf("transition/%s: %w", name, err)
	}
	if !yes {
		if err := program.WriteLines(s.Out, foreseen.Lines(back)); err != nil {
			return err
		}
		fmt.Fprintln(s.Messages, "Nothing was changed. Say the same with --yes to carry it out.")
		return nil
	}
	back.Spec.NeedsApproval = foreseen.NeedsApproval
	err = server.Create(ctx, back, client.FieldOwner(fieldOwner))
	if apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("transition/%s was taken back already: see `restripe get transition %s`, and delete that to do it again", name, back.Name)
	}
	if err != nil {
		return fmt.Errorf("transition/%s: %w", back.Name, server.explain(err))
	}
	lines := []string{fmt.Sprintf("transition/%s created: %s to %s of class %s", back.Name, back.Spec.From, back.Spec.To, back.Spec.Class)}
	if policy := back.Spec.PolicyRef; policy != "" {
		lines = append(lines, fmt.Sprintf("policy/%s is put on Hold; `restripe resume policy/%s` lifts it", policy, policy))
	}
	if foreseen.NeedsApproval {
		lines = append(lines, fmt.Sprintf("it waits for `restripe approve %s`: %s", back.Name, foreseen.Why))
	}
	return program.WriteLines(s.Out, lines)
}

func deleteCommand(s *session) *cobra.Command {
	command := &cobra.Command{
		Use: "delete KIND NAME...", Short: "Delete declared objects; what is stored stays",
		Long: "Delete objects on the API server: " + kindWords() + ". What is stored stays as it is. A policy takes its\n" +
			"transitions with it; a backend or scheme goes when nothing depends on it any more. Stored objects are deleted with `restripe rm`.",
		Example: "  restripe delete policy media\n  restripe delete transition media-rs12-2-7",
		Args:    cobra.MinimumNArgs(2),
	}
	where := s.serverFlags(command)
	command.RunE = func(command *cobra.Command, arguments []string) error {
		kind, err := parseKind(command, arguments[0])
		if err != nil {
			return err
		}
		server, err := s.apiServer(where)
		if err != nil {
			return err
		}
		var failed []error
		for _, name := range arguments[1:] {
			failed = append(failed, s.deleteDeclared(command.Context(), server, kind, name))
		}
		return errors.Join(failed...)
	}
	return command
}

func (s *session) deleteDeclared(ctx context.Context, server *apiServer, kind *declaredKind, name string) error {
	object := kind.object()
	if err := server.read(ctx, kind, name, object); err != nil {
		return err
	}
	if err := server.Delete(ctx, object); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("%s/%s: %w", kind, name, server.explain(err))
	}
	said := "deleted"
	if len(object.GetFinalizers()) > 0 {
		said = "is being deleted; it goes when nothing of it runs and nothing depends on it"
	}
	return program.WriteLines(s.Out, []string{fmt.Sprintf("%s/%s %s", kind, name, said)})
}
