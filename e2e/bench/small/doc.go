// Command small measures small objects through a gateway: how much room those take that were deleted and overwritten, and when it is
// free again; what puts take, one after the other and many at a time, by when they wait for company; what is sent for them, by code,
// keys, batch and rate, beside what updates in place send, as BCStore's Figures 8 to 16 have it; and what they take of the catalog and of
// the memory of a gateway. Run it from the root of the repository.
package main
