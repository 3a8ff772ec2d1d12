package controller

import (
	"fmt"

	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/stripe"
	"github.com/restripe/restripe/operator/api/v1alpha1"
	"github.com/restripe/restripe/operator/decide"
	"github.com/restripe/restripe/operator/price"
)

// judgeOf is the cost-benefit check of a policy.
func judgeOf(policy *v1alpha1.RedundancyPolicy, declaration *decide.Declaration) (decide.Judge, error) {
	table, err := price.TableOf(policy.Spec.Prices)
	if err != nil {
		return nil, fmt.Errorf("reading the prices: %w", err)
	}
	return func(move decide.Move, estimate decide.Estimate) decide.Verdict {
		operations, err := price.OperationsOf(declaration.Class.Ladder, move.From, move.To, estimate.Groups)
		if err != nil { // off the ladder: what is known is what it sends
			operations = 0
		}
		verdict := table.Judge(price.Move{
			From: move.From, To: move.To, BytesSent: estimate.BytesSent, Operations: operations,
			StoredBefore: estimate.StoredBefore, StoredAfter: estimate.StoredAfter,
		})
		return decide.Verdict{
			Refused: !verdict.Worthwhile, Message: verdict.Message, Price: verdict.Cost, SavingPerMonth: verdict.MonthlySaving,
			PriceText: price.Amount(verdict.Cost), SavingMonthText: price.Amount(verdict.MonthlySaving),
		}
	}, nil
}

// savingsOf compares what is stored with keeping everything on the first step. What was spent is that of the transitions
// that still exist. What is not known now is as it was.
func savingsOf(view *decide.PolicyView) *v1alpha1.Savings {
	if view.Heat == nil || !view.Heat.Complete || view.Declaration == nil {
		return view.Policy.Status.Savings
	}
	table, err := price.TableOf(view.Policy.Spec.Prices)
	if err != nil {
		return view.Policy.Status.Savings
	}
	var rungs []price.Rung
	for i := range view.Heat.Rungs {
		rungs = append(rungs, price.Rung{Scheme: view.Heat.Rungs[i].Scheme, StoredBytes: view.Heat.Rungs[i].StoredBytes})
	}
	ladder := view.Declaration.Class.Ladder
	var sent, operations int64
	for i := range view.Transitions {
		done := view.Transitions[i].Status.Progress
		if done == nil {
			continue
		}
		sent += done.BytesSentMeasured
		operations += operationsOf(ladder, &view.Transitions[i])
	}
	return table.SavingsOf(ladder, rungs, sent, operations).Status()
}

// operationsOf counts the blocks that a transition has read and written.
func operationsOf(ladder stripe.Ladder, transition *v1alpha1.Transition) int64 {
	from, err := stripe.ParseScheme(transition.Status.From)
	if err != nil {
		return 0
	}
	to, err := stripe.ParseScheme(transition.Status.To)
	if err != nil {
		return 0
	}
	operations, err := price.OperationsOf(ladder, from, to, transition.Status.Progress.GroupsDone)
	if err != nil {
		return 0 // off the ladder
	}
	return operations
}

// moneyOf puts what candidates pay at the prices of rungs into words.
func moneyOf(amount float64) string { return price.Amount(price.Bytes(amount)) }

// rungsOf is what the rungs of a ladder cost at the prices of a policy, for groups of a size.
func rungsOf(policy *v1alpha1.RedundancyPolicy, ladder stripe.Ladder, groupBytes int64) (api.RungPrices, error) {
	table, err := price.TableOf(policy.Spec.Prices)
	if err != nil {
		return api.RungPrices{}, fmt.Errorf("reading the prices: %w", err)
	}
	return table.Rungs(ladder, groupBytes)
}
