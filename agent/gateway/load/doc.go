// Package load remembers how long the requests of the last seconds took, and how much transitions moved.
package load
