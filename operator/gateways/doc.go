// Package gateways is how the operator and the console reach the gateways of storage backends, and what they remember of
// them.
//
// A Pool stands for the gateways of one backend, any of which answers for all. An Observer asks them on behalf of everybody
// in the process and keeps the answers for a while, so that a thousand policies of one backend cost it no more than one, and
// every group is walked over once, whoever wants to know. Observers are the observers of all backends; an operator and a
// console that run in one process share them. What is remembered is only what would be told again.
package gateways
