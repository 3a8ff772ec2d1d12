// Package job is how work goes on in the background: loops with a period and a wake.
package job
