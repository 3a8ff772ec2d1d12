// Command small measures small objects through a gateway: how much room those take that were deleted and overwritten, and when it is
// free again; and what puts take, one after the other and many at a time, by when they wait for company. Run it from the root of the
// repository.
package main
