// Package trace tells where the time of a request goes: over gateways, agents and the catalog, to a collector of OpenTelemetry.
// Nothing is traced unless Start was called, and then a share of what is done.
package trace
