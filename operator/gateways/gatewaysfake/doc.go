// Package gatewaysfake is the gateways of a backend in memory, for tests and benchmarks of the operator: classes, groups
// that are only counted, their heat as a function of time, and transitions that progress with the clock that is passed
// in. It keeps to the contract of gateways.Gateway, to which package gatewaystest holds it, and writes down what a
// controller must never ask for.
package gatewaysfake
