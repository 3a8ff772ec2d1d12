// Package arrival measures how small objects come, and says for how long the first of a batch waits for company.
package arrival
