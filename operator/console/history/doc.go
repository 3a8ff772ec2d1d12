// Package history keeps samples of the heat and the size of classes over time, bounded in memory and on disk. What is on
// disk is read again by the next program; a sample that a crash tears, or the last ones before a power loss, are missing
// then. When the bound is reached the oldest samples go first.
package history
