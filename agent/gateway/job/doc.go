// Package job is how work goes on in the background: loops with a period and a wake, work that is waited for when a gateway
// closes, and the run of a durable job, which is saved while it goes on, may be halted, and is taken up again elsewhere.
package job
