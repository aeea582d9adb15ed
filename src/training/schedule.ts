// Learning rate over the steps of a run. It depends on the step alone, so a resumed run goes on where it stopped.

export interface Schedule {
  readonly peak: number;
  /** Steps of linear rise from 0. */
  readonly warmupSteps: number;
  /** Steps after which a cosine has brought the rate to `finalShare` of its peak; undefined keeps it constant. */
  readonly decaySteps?: number;
  readonly finalShare: number;
}

/** @param step number of the step, from 1 */
export function learningRate(step: number, { peak, warmupSteps, decaySteps, finalShare }: Schedule): number {
  const rise = warmupSteps === 0 ? 1 : Math.min(1, step / warmupSteps);
  if (decaySteps === undefined) return peak * rise;
  const progress = Math.min(1, step / decaySteps);
  return peak * rise * (finalShare + (1 - finalShare) * 0.5 * (1 + Math.cos(Math.PI * progress)));
}
