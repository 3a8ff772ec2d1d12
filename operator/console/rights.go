package console

import (
	"github.com/restripe/restripe/agent/access"
	"github.com/restripe/restripe/operator/api/console/v1/consolev1connect"
)

// Rights that are for what is no call, or for no others.
var (
	auditRight   = access.Right{Verb: access.Audit, Resource: access.Policies}
	metricsRight = access.Right{Verb: access.Metrics, Resource: access.Backends}
)

// rule is what a call needs.
type rule struct {
	right   access.Right // the zero Right: only to be known
	changes bool         // it passes auditing.act, and is in the audit log
	tries   bool         // it finds out whether something could be changed, and changes nothing
}

// rules is the one table of what every call needs. A call that is not in it is refused.
var rules = map[string]rule{
	consolev1connect.ConsoleWhoAmIProcedure: {},

	consolev1connect.ConsoleGetAboutProcedure:         see(access.Policies),
	consolev1connect.ConsoleGetOverviewProcedure:      see(access.Policies),
	consolev1connect.ConsoleWatchOverviewProcedure:    see(access.Policies),
	consolev1connect.ConsoleListPoliciesProcedure:     see(access.Policies),
	consolev1connect.ConsoleWatchPoliciesProcedure:    see(access.Policies),
	consolev1connect.ConsoleGetPolicyProcedure:        see(access.Policies),
	consolev1connect.ConsoleListTransitionsProcedure:  see(access.Transitions),
	consolev1connect.ConsoleWatchTransitionsProcedure: see(access.Transitions),
	consolev1connect.ConsoleGetTransitionProcedure:    see(access.Transitions),
	consolev1connect.ConsoleGetHeatProcedure:          see(access.Policies),
	consolev1connect.ConsoleWatchHeatProcedure:        see(access.Policies),
	consolev1connect.ConsoleGetHistoryProcedure:       see(access.Policies),
	consolev1connect.ConsoleListNodesProcedure:        see(access.Backends),
	consolev1connect.ConsoleWatchNodesProcedure:       see(access.Backends),
	consolev1connect.ConsoleGetScrubsProcedure:        see(access.Backends),
	consolev1connect.ConsoleGetCompactionsProcedure:   see(access.Backends),
	consolev1connect.ConsoleGetBalancesProcedure:      see(access.Backends),
	consolev1connect.ConsoleSearchObjectsProcedure:    see(access.Backends),
	consolev1connect.ConsoleGetObjectLayoutProcedure:  see(access.Backends),
	consolev1connect.ConsoleListAuditProcedure:        {right: auditRight},
	consolev1connect.ConsoleExportAuditProcedure:      {right: auditRight},
	consolev1connect.ConsoleVerifyAuditProcedure:      {right: auditRight},

	consolev1connect.ConsoleLintPolicyProcedure:   work(access.Policies),
	consolev1connect.ConsolePlanPolicyProcedure:   work(access.Policies),
	consolev1connect.ConsoleDiffPolicyProcedure:   work(access.Policies),
	consolev1connect.ConsoleGetPictureProcedure:   work(access.Policies),
	consolev1connect.ConsolePlanRollbackProcedure: work(access.Policies),
	consolev1connect.ConsoleWhatIfProcedure:       work(access.Policies),
	consolev1connect.ConsolePlanBalanceProcedure:  work(access.Backends),
	// It changes nothing, and has a gateway ask whoever is at an address: who may not add nodes has no business with that.
	consolev1connect.ConsolePlanAddNodeProcedure: {right: access.Right{Verb: access.Apply, Resource: access.Backends}, tries: true},

	consolev1connect.ConsoleApplyPolicyProcedure:  change(access.Apply, access.Policies),
	consolev1connect.ConsoleDeletePolicyProcedure: change(access.Apply, access.Policies),
	consolev1connect.ConsolePinPolicyProcedure:    change(access.Apply, access.Policies),
	consolev1connect.ConsoleUnpinPolicyProcedure:  change(access.Apply, access.Policies),
	consolev1connect.ConsoleMoveObjectProcedure:   change(access.Apply, access.Backends),
	consolev1connect.ConsoleDrainNodeProcedure:    change(access.Apply, access.Backends),
	consolev1connect.ConsoleUndrainNodeProcedure:  change(access.Apply, access.Backends),
	consolev1connect.ConsoleDownNodeProcedure:     change(access.Apply, access.Backends),
	consolev1connect.ConsoleUpNodeProcedure:       change(access.Apply, access.Backends),
	consolev1connect.ConsoleReplaceNodeProcedure:  change(access.Apply, access.Backends),
	consolev1connect.ConsoleRemoveNodeProcedure:   change(access.Apply, access.Backends),
	consolev1connect.ConsolePlaceNodeProcedure:    change(access.Apply, access.Backends),

	consolev1connect.ConsoleAddNodeProcedure:          change(access.Apply, access.Backends),
	consolev1connect.ConsoleStartBalanceProcedure:     change(access.Apply, access.Backends),
	consolev1connect.ConsolePauseBalanceProcedure:     change(access.Pause, access.Backends),
	consolev1connect.ConsoleResumeBalanceProcedure:    change(access.Pause, access.Backends),
	consolev1connect.ConsoleCancelBalanceProcedure:    change(access.Pause, access.Backends), // it does no more than stop, as a pause does
	consolev1connect.ConsoleStartCompactionProcedure:  change(access.Apply, access.Backends),
	consolev1connect.ConsolePauseCompactionProcedure:  change(access.Pause, access.Backends),
	consolev1connect.ConsoleResumeCompactionProcedure: change(access.Pause, access.Backends),

	consolev1connect.ConsoleApproveTransitionProcedure:  change(access.Approve, access.Transitions),
	consolev1connect.ConsolePauseTransitionProcedure:    change(access.Pause, access.Transitions),
	consolev1connect.ConsoleResumeTransitionProcedure:   change(access.Pause, access.Transitions),
	consolev1connect.ConsoleThrottleTransitionProcedure: change(access.Pause, access.Transitions),
	consolev1connect.ConsoleHoldPolicyProcedure:         change(access.Pause, access.Policies),
	consolev1connect.ConsoleCancelTransitionProcedure:   change(access.Cancel, access.Transitions),
	consolev1connect.ConsoleRollbackTransitionProcedure: change(access.Rollback, access.Transitions),
}

func see(what access.Resource) rule {
	return rule{right: access.Right{Verb: access.Get, Resource: what}}
}
func work(what access.Resource) rule {
	return rule{right: access.Right{Verb: access.Plan, Resource: what}}
}

func change(verb access.Verb, what access.Resource) rule {
	return rule{right: access.Right{Verb: verb, Resource: what}, changes: true}
}
