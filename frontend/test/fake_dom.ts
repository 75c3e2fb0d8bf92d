/** As much of a document as drawing needs: elements, attributes and text nodes. */

export class FakeNode {
  readonly attributes = new Map<string, string>();
  readonly style: Record<string, string> = {};
  readonly dataset: Record<string, string> = {};
  hidden = false;
  private nodes: FakeNode[] = [];
  private readonly listeners = new Map<string, () => void>();

  constructor(
    readonly tag: string,
    private readonly own = ''
  ) {}

  get children(): readonly FakeNode[] {
    return this.nodes;
  }

  get childNodes(): readonly FakeNode[] {
    return this.nodes;
  }

  get firstChild(): FakeNode | null {
    return this.nodes[0] ?? null;
  }

  setAttribute(name: string, value: string): void {
    this.attributes.set(name, value);
  }

  getAttribute(name: string): string | null {
    return this.attributes.get(name) ?? null;
  }

  addEventListener(name: string, listener: () => void): void {
    this.listeners.set(name, listener);
  }

  /** What a browser does when a person opens or presses it. */
  fire(name: string): void {
    this.listeners.get(name)?.();
  }

  replaceChildren(...nodes: (FakeNode | string)[]): void {
    this.nodes = [];
    this.append(...nodes);
  }

  /** It stands nowhere that is known to it. */
  remove(): void {
    this.listeners.clear();
  }

  /** It can't be painted on. */
  getContext(): null {
    return null;
  }

  contains(): boolean {
    return false;
  }

  append(...nodes: (FakeNode | string)[]): void {
    this.nodes.push(
      ...nodes.map(node =>
        typeof node === 'string' ? new FakeNode('#text', node) : node
      )
    );
  }

  get textContent(): string {
    return this.own + this.children.map(child => child.textContent).join('');
  }

  set textContent(text: string) {
    this.replaceChildren(...(text === '' ? [] : [text]));
  }

  /** By the one selector that is used: a tag's or an attribute's value. */
  querySelectorAll(selector: string): FakeNode[] {
    const [, name = '', value = ''] = /^\[(.+)=(.+)\]$/.exec(selector) ?? [];
    return this.children.flatMap(child => [
      ...(child.attributes.get(name) === value ? [child] : []),
      ...child.querySelectorAll(selector)
    ]);
  }

  /** All elements below this one that have a tag. */
  all(tag: string): FakeNode[] {
    return this.children.flatMap(child => [
      ...(child.tag === tag ? [child] : []),
      ...child.all(tag)
    ]);
  }
}

/** Let what is drawn be made of such nodes. */
export function fakeDocument(): void {
  Object.assign(globalThis, {
    document: {
      createElement: (tag: string) => new FakeNode(tag),
      createElementNS: (_: string, tag: string) => new FakeNode(tag),
      createTextNode: (text: string) => new FakeNode('#text', text)
    }
  });
}
