// A clock that runs faster than the real one, so that waits of the machines are short while real work goes on.
import { type Clock, realClock } from "../../src/asl/clock.ts";

/** @param startMs the same for all processes of a storm: deadlines that one wrote down are another's too */
export function fastClock(startMs: number, factor: number): Clock {
  return {
    now: () => startMs + (Date.now() - startMs) * factor,
    at: (timeMs, callback) => realClock.at(startMs + (timeMs - startMs) / factor, callback),
    hold: () => () => {},
  };
}
