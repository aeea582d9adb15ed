// How much of a report is read. Reports may be written by anybody.

export const MOST_TESTS = 10_000;
export const NAME_CHARACTERS = 1000;
