// Command catalog measures the engines that keep a catalog: puts and gets per second beside one another on one disk, and, with
// -objects, catalogs of many objects. Run it from the root of the repository.
//
// The clients are children of the program, one for each measurement, so that the processor time and the memory are those of one
// gateway's part in it; a member of etcd is a child as well.
package main
