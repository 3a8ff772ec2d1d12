// Package class holds the classes of objects in force: records of the catalog that a class file begins and the API changes.
package class
