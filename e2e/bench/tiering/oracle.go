package main

import (
	"math"
	"time"

	"github.com/restripe/restripe/operator/replay"
)

// perGroup is the accesses of each group by step.
func perGroup(t *replay.Trace) [][]int {
	steps := make([][]int, len(t.Bytes))
	for _, a := range t.Accesses {
		steps[a.Group] = append(steps[a.Group], int(a.At/step))
	}
	return steps
}

// runStatic keeps everything on one rung.
func runStatic(t *replay.Trace, s setting, rung int) outcome {
	return runPaths(t, s, costs{}, "always "+ladder[rung].String(), func(group int, accesses []int, steps int, path []int8) {
		for i := range path {
			path[i] = int8(rung)
		}
	})
}

// runOracle gives each group the way along the ladder that costs least.
func runOracle(t *replay.Trace, s setting, c costs) outcome {
	prices := s.missPrice()
	choice := make([][3]int8, s.steps())
	return runPaths(t, s, c, "oracle", func(group int, accesses []int, steps int, path []int8) {
		// Backwards: cost[r] is the least of all steps from here on, being on rung r in this one.
		var cost [3]float64
		left := len(accesses) - 1
		for i := steps - 1; i >= accesses[0]; i-- {
			count := 0
			for ; left >= 0 && accesses[left] >= i; left-- {
				count++
			}
			var next [3]float64
			for from := range next {
				best := math.Inf(1)
				for to := range cost {
					if total := cost[to] + c.sent[from][to]*s.networkDays; total < best {
						best, choice[i][from] = total, int8(to)
					}
				}
				next[from] = best + ladder[from].Overhead()*step.Hours()/24 + float64(count)*prices[from]
			}
			cost = next
		}
		rung := int8(0)
		for r := range cost {
			if cost[r] < cost[rung] {
				rung = int8(r)
			}
		}
		for i := range path {
			path[i] = rung
			rung = choice[accesses[0]+i][rung]
		}
	})
}

// runPaths accounts for groups whose rung at each step, from their first access on, a function writes down.
func runPaths(t *replay.Trace, s setting, c costs, name string, choose func(group int, accesses []int, steps int, path []int8)) outcome {
	out := outcome{name: name, groups: len(t.Bytes), shortestStay: time.Duration(math.MaxInt64)}
	steps, prices := s.steps(), s.missPrice()
	stored, sent, written := make([]float64, steps), make([]float64, steps), make([]float64, steps)
	path := make([]int8, steps)
	for group, accesses := range perGroup(t) {
		bytes := float64(t.Bytes[group])
		own := path[:steps-accesses[0]]
		choose(group, accesses, steps, own)
		for _, i := range accesses {
			rung := own[i-accesses[0]]
			out.accesses[rung]++
			out.missCost += prices[rung] * bytes
		}
		moves := 0
		for i, rung := range own {
			at := accesses[0] + i
			stored[at] += ladder[rung].Overhead() * bytes
			if i > 0 && own[i-1] != rung {
				sent[at] += c.sent[own[i-1]][rung] * bytes
				written[at] += c.written[own[i-1]][rung] * bytes
				moves++
			}
		}
		out.moves += moves
		out.mostMoves = max(out.mostMoves, moves)
	}
	for i := range steps {
		out.sent += int64(sent[i])
		out.written += int64(written[i])
		out.add(i, stored[i])
	}
	return out
}
