// Package apitest is what every API server that serves the kinds of Restripe has to pass: what it takes and refuses and
// in what words, what it fills in, and what kubectl shows. The cases are text, in testdata.
package apitest
