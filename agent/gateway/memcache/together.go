package memcache

import (
	"slices"

	"github.com/restripe/restripe/agent/gateway/values"
)

// mostTogether is how many jobs of one connection read together.
const mostTogether = windowJobs / 2

// gather keeps a job that reads a value until it is seen what comes after it, so that they read together.
func gather(c *connection, j *job) {
	if c.gathered = append(c.gathered, j); len(c.gathered) == mostTogether {
		carryGathered(c)
	}
}

// carryGathered has the jobs done that were kept.
func carryGathered(c *connection) {
	jobs := c.gathered
	if c.gathered = nil; len(jobs) == 1 {
		admit(c, jobs[0])
		go work(c, jobs[0])
		return
	}
	free := jobs[:0]
	for _, j := range jobs {
		if admit(c, j); j.after != nil {
			go work(c, j)
		} else {
			free = append(free, j)
		}
	}
	if len(free) > 0 {
		go workTogether(c, free)
	}
}

// workTogether does jobs that nothing comes before. Those whose values cannot be read together are done by themselves.
func workTogether(c *connection, jobs []*job) {
	keys := make([]string, len(jobs))
	for i, j := range jobs {
		keys[i] = j.key
	}
	c.client.session.GetTogether(c.working, keys, func(some []values.Got) {
		for _, got := range slices.Backward(some) { // so that the first that is waited for is the last to be done
			j := jobs[got.Index]
			if j.got = got; got.Known {
				work(c, j)
			} else {
				go work(c, j)
			}
		}
	})
}

// drain waits until all jobs are done and written.
func drain(c *connection) {
	carryGathered(c)
	if c.window != nil {
		c.window.drain()
	}
}
