/** Hears when a cell ends that ran long, which a person may no longer watch. */

import type { Band, Bands } from './bands';

const LOOKED_AT = 100;

export class LongCells {
  private readonly running = new Set<Band>();

  constructor(
    private readonly bands: Pick<Bands, 'onChange' | 'newest'>,
    /** From how many seconds on a cell is long; 0 is never. */
    private readonly leastSeconds: () => number,
    private readonly tell: (band: Band, elapsedMs: number) => void
  ) {
    bands.onChange(() => this.look());
  }

  private look(): void {
    for (const band of this.bands.newest(LOOKED_AT)) {
      if (band.endMs === null) {
        this.running.add(band);
      } else if (this.running.delete(band)) {
        this.ended(band, band.endMs - band.startMs);
      }
    }
  }

  private ended(band: Band, elapsedMs: number): void {
    const least = this.leastSeconds();
    // who interrupts a cell knows that it ended
    if (
      least > 0 &&
      elapsedMs >= least * 1000 &&
      band.status !== 'interrupted'
    ) {
      this.tell(band, elapsedMs);
    }
  }
}
