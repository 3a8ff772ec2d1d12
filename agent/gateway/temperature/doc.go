// Package temperature is how often groups are used: a gateway counts accesses by its clients, keeps its part of the counters
// in the catalog and takes over those of the others, and walks the records at a bounded pace for the heat report.
package temperature
