// Package relocate moves blocks to where they belong: off nodes that are leaving, and into failure domains that hold less of
// their group. A slot is copied and keeps its column, so parities stay as they are.
package relocate
