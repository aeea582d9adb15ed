// Apart from the terminals, so that whoever only names one does not load them.

/** The name under which terminfo describes what our screens understand. */
export const TERMINAL_NAME = "xterm-256color";
