package console

import (
	"context"
	"errors"
	"fmt"

	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/client"
	consolev1 "github.com/restripe/restripe/operator/api/console/v1"
	"github.com/restripe/restripe/operator/console/contract"
	"github.com/restripe/restripe/operator/gateways"
	"github.com/restripe/restripe/operator/words"
)

// balances adds nodes, and shows the balance of backends and steers it.
type balances struct {
	*sources
	*auditing
}

// adding is what the gateways are asked for to add a node.
func (s *balances) adding(
	request *consolev1.AddNodeRequest, isDry bool,
) (seen *seenBackend, name string, add func(context.Context, *client.Client) (api.AddedNode, error), err error) {
	name = request.GetNode().GetName()
	seen, err = s.backendNamed(request.GetNode().GetBackend())
	wanted := api.AddRequest{
		Address: request.Address, Domain: request.FailureDomain, Spare: request.Spare, Use: api.UseCapacity,
		BytesPerSecond: request.BytesPerSecond, DryRun: isDry,
	}
	if request.Balance {
		wanted.Use = api.UseBalance
	}
	return seen, name, func(ctx context.Context, c *client.Client) (api.AddedNode, error) {
		return c.AddNode(ctx, name, wanted)
	}, err
}

// PlanAddNode says whether a node could be added, and what would be moved to it.
func (s *balances) PlanAddNode(ctx context.Context, request *consolev1.AddNodeRequest) (*consolev1.AddNodePlan, error) {
	seen, name, look, err := s.adding(request, true)
	if err != nil {
		return nil, err
	}
	found, err := gateways.Ask(ctx, seen.pool, gateways.WalkPatience, look)
	if err != nil {
		return nil, refusalOf(err)
	}
	answer := &consolev1.AddNodePlan{Said: name + " can be added; it would take new groups, nothing more"}
	if found.Plan != nil {
		answer.Plan = contract.BalancePlan(found.Plan)
		answer.Said = name + " can be added. " + answer.Plan.Said
	}
	return answer, nil
}

// AddNode makes a node a member.
func (s *balances) AddNode(ctx context.Context, request *consolev1.AddNodeRequest) (*consolev1.AddedNode, error) {
	seen, name, add, err := s.adding(request, false)
	if err != nil {
		return nil, err
	}
	var added api.AddedNode
	err = s.act(ctx, subject{object: "node/" + seen.name + "/" + name}, func(ctx context.Context) (any, error) {
		added, err = gateways.AskFirst(ctx, seen.pool, changePatience, add) // another one would refuse what was done
		return added, err
	})
	seen.wanted.Notify()
	if err != nil {
		return nil, err
	}
	answer := &consolev1.AddedNode{Said: name + " is a member and takes new groups"}
	if added.Balance != nil {
		answer.Said += "; blocks are moved to it until every node holds about its share"
	}
	if added.Node != nil {
		answer.Node = contract.Node(seen.name, added.Node)
	}
	return answer, nil
}

// balanceOf asks for the balance; it is nil where the gateway is of a release that has none.
func balanceOf(c *client.Client, ctx context.Context) (*api.Balance, error) {
	balance, err := c.Balance(ctx)
	if errors.Is(err, api.ErrNotFound) {
		return nil, nil
	}
	return &balance, err
}

// GetBalances says how far balances are.
func (s *balances) GetBalances(_ context.Context, request *consolev1.GetBalancesRequest) (*consolev1.BalanceReport, error) {
	report := &consolev1.BalanceReport{}
	for _, seen := range s.backends.all(request.Backend) {
		balance, known, fresh := seen.balance.Get()
		report.Sources = append(report.Sources, sourceView("backend "+seen.name, fresh))
		if known && balance != nil {
			report.Balances = append(report.Balances, contract.Balance(seen.name, balance))
		}
	}
	return report, nil
}

// PlanBalance says what a balance would move now.
func (s *balances) PlanBalance(ctx context.Context, request *consolev1.PlanBalanceRequest) (*consolev1.BalancePlan, error) {
	seen, err := s.backendNamed(request.Backend)
	if err != nil {
		return nil, err
	}
	plan, err := gateways.Ask(ctx, seen.pool, gateways.WalkPatience, func(ctx context.Context, c *client.Client) (api.BalancePlan, error) {
		return c.PlanBalance(ctx, request.BytesPerSecond)
	})
	if err != nil {
		return nil, refusalOf(err)
	}
	return contract.BalancePlan(&plan), nil
}

// StartBalance begins a balance, or gives the one under way another rate.
func (s *balances) StartBalance(ctx context.Context, request *consolev1.StartBalanceRequest) (*consolev1.BalanceChange, error) {
	return s.steer(ctx, request.Backend, func(c *client.Client, ctx context.Context) (api.Balance, error) {
		return c.StartBalance(ctx, api.BalanceRequest{BytesPerSecond: request.BytesPerSecond})
	})
}

// PauseBalance stops a balance until it is resumed.
func (s *balances) PauseBalance(ctx context.Context, request *consolev1.PauseBalanceRequest) (*consolev1.BalanceChange, error) {
	return s.steer(ctx, request.Backend, (*client.Client).PauseBalance)
}

// ResumeBalance goes on with a balance that was paused.
func (s *balances) ResumeBalance(ctx context.Context, request *consolev1.ResumeBalanceRequest) (*consolev1.BalanceChange, error) {
	return s.steer(ctx, request.Backend, (*client.Client).ResumeBalance)
}

// CancelBalance ends a balance; what was moved stays where it is.
func (s *balances) CancelBalance(ctx context.Context, request *consolev1.CancelBalanceRequest) (*consolev1.BalanceChange, error) {
	return s.steer(ctx, request.Backend, (*client.Client).CancelBalance)
}

// steer does a change of the balance of a backend and records it.
func (s *balances) steer(
	ctx context.Context, backend string, call func(*client.Client, context.Context) (api.Balance, error),
) (*consolev1.BalanceChange, error) {
	seen, err := s.backendNamed(backend)
	if err != nil {
		return nil, err
	}
	after, err := changeAt(ctx, s.auditing, seen, "balance", (*client.Client).Balance, call)
	if err != nil {
		return nil, err
	}
	seen.balance.Set(s.now(), &after, nil)
	said := fmt.Sprintf("balance %d of %s is %s", after.Number, seen.name, after.State)
	if after.IsUnderWay() {
		said += ", at " + words.Limit(after.BytesPerSecond)
	}
	return &consolev1.BalanceChange{Balance: contract.Balance(seen.name, &after), Said: said}, nil
}
