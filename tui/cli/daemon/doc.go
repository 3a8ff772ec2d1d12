// Package daemon has the commands that run on the machines with the data: agent and gateway. It knows neither Kubernetes nor the
// faces, so that a program with these commands alone is small.
package daemon
