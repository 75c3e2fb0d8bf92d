/** Whether a pointer is down on a view: what is made anew then loses the click. */
export class PointerPress {
  /** A press has begun there, and its click has yet to come. */
  get isDown(): boolean {
    return this.down;
  }

  /** `released` is called after the click that a press may end in. */
  constructor(
    node: HTMLElement,
    private readonly released: () => void
  ) {
    node.addEventListener('pointerdown', () => {
      this.down = true;
      document.addEventListener('pointerup', this.release);
      document.addEventListener('pointercancel', this.release);
      document.addEventListener('pointermove', this.moved);
    });
  }

  /** A browser may not tell of a release over a scrollbar or another window. */
  private readonly moved = (event: PointerEvent): void => {
    if (event.buttons === 0) {
      this.release();
    }
  };

  private readonly release = (): void => {
    document.removeEventListener('pointerup', this.release);
    document.removeEventListener('pointercancel', this.release);
    document.removeEventListener('pointermove', this.moved);
    // a click follows its pointer's event within the same task
    window.setTimeout(() => {
      this.down = false;
      this.released();
    });
  };

  private down = false;
}
