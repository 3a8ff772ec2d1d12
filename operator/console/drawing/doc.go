// Package drawing draws one group as an array of cells and, step by step, what a plan does to it, for the pages of a console.
package drawing
