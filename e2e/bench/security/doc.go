// Command security measures what the doors of a cluster cost: certificates between its parts, and clients that are slow on
// purpose. Run it from the root of the repository.
package main
