// Package access says who calls and what they may do, at gateways and at consoles: one vocabulary of rights, and one file of
// people and programs. Local takes everybody for the user of this machine, with every right, and is for loopback alone; Users
// knows those of a file, by bearer tokens and access keys.
package access
