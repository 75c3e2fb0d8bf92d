/** The page's colours, for canvases, which no style sheet reaches. */

export interface Colors {
  readonly text: string;
  readonly grid: string;
  readonly series: readonly string[];
  readonly bands: readonly string[];
}

/** How many colours chart.css has of each kind. */
const SERIES = [0, 1, 2, 3, 4];
const BANDS = [0, 1, 2, 3, 4, 5];

/** Read the colours that hold at an element now. */
export function readColors(element: Element): Colors {
  const style = getComputedStyle(element);
  const color = (name: string) => style.getPropertyValue(name).trim();
  return {
    text: color('--wb-text-2'),
    grid: color('--wb-grid'),
    series: SERIES.map(index => color(`--wb-series-${index}`)),
    bands: BANDS.map(index => color(`--wb-band-${index}`))
  };
}

/** Be told when JupyterLab's theme changes; returns how to stop. */
export function onThemeChange(listener: () => void): () => void {
  const observer = new MutationObserver(() =>
    // a theme's style sheet may arrive after its name
    requestAnimationFrame(listener)
  );
  observer.observe(document.body, {
    attributeFilter: ['data-jp-theme-light', 'data-jp-theme-name']
  });
  return () => observer.disconnect();
}

/** Whether the page is dark now. */
export function isDark(): boolean {
  return document.body.dataset['jpThemeLight'] === 'false';
}
