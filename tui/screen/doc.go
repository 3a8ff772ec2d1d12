// Package screen is the terminal face of a console: `restripe tui`. It shows what the console tells and steers through
// it, and knows of nothing else.
//
// The screen is one Bubble Tea program. [Model] has a page for each kind and a stack of pages opened over it; a page has
// Init, Update, View and SetSize, and is changed by the program's one loop alone, so that nothing is locked. What takes
// time is a command: a call with a deadline, or the next message of a watch, and comes back as a message. A watch that
// breaks is begun anew, with the last picture and the time since when it is stale on the screen meanwhile.
//
// Every key is in one [keymap], from which the help and the hints at the foot are made. No meaning is in a colour alone:
// without colours the same text is on the screen.
package screen
