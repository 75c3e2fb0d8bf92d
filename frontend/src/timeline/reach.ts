/** Which part of a timeline to ask for, so that moving a little asks for nothing. */

/** A part of a run, in whole nanoseconds from its start. */
export interface Part {
  readonly fromNs: number;
  readonly toNs: number;
}

/** What is at hand. */
export interface AtHand extends Part {
  /** Of its merged bars; 0 where every event is there by itself. */
  readonly stepNs: number;
}

export interface WindowRequest extends Part {
  readonly steps: number;
}

/** Screens on either side of the one that is seen. */
const MARGIN = 1;
/** Closer than this to the edge of what is at hand more is asked for, in screens. */
const NEAR = 0.3;
/** Narrower bars are not told apart. */
const PIXELS_A_STEP = 2;

/** A part with a screen on either side. */
export function around(seen: Part, pixels: number): WindowRequest {
  const length = seen.toNs - seen.fromNs;
  return {
    fromNs: Math.floor(seen.fromNs - MARGIN * length),
    toNs: Math.ceil(seen.toNs + MARGIN * length),
    steps: Math.ceil(((1 + 2 * MARGIN) * pixels) / PIXELS_A_STEP)
  };
}

/** What has to be asked for to show a part well; null where nothing has to be. */
export function wanted(
  seen: Part,
  pixels: number,
  atHand: AtHand | null
): WindowRequest | null {
  const reach = around(seen, pixels);
  if (atHand === null) {
    return reach;
  }
  const near = NEAR * (seen.toNs - seen.fromNs);
  const covers =
    atHand.fromNs <= seen.fromNs - near && atHand.toNs >= seen.toNs + near;
  const stepNs = (reach.toNs - reach.fromNs) / reach.steps;
  // the server's steps are powers of two, so up to twice as wide as asked for
  const fine = atHand.stepNs <= 2 * stepNs;
  return covers && fine ? null : reach;
}
