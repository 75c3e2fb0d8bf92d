/** Cells with a lab's source that were edited and not run since. */

/** As much of a cell as is looked at. */
export interface SourceCell {
  readonly source: string;
  readonly isDirty: boolean;
}

const MAGIC = /^%%lab\s+([a-z][a-z0-9-]{2,40})\b/;
const GRADES = /\b(?:check|submit)\s*\(|\blab\.(?:run|trace)\s*\(/;

/**
 * Name the labs whose file is older than their cell in the notebook.
 *
 * @param code - of a cell that has run; nothing is named unless it grades a file
 * @param cells - all code cells of its notebook
 */
export function unrunLabs(
  code: string,
  cells: Iterable<SourceCell>
): readonly string[] {
  if (!GRADES.test(code) || MAGIC.test(code)) {
    return [];
  }
  const labs = [...cells].flatMap(({ source, isDirty }) =>
    isDirty ? (MAGIC.exec(source)?.[1] ?? []) : []
  );
  return [...new Set(labs)];
}

/** Say so. */
export function unrunWords(labs: readonly string[]): string {
  const names = labs.slice(0, 3).map(lab => `%%lab ${lab}`);
  return (
    `Edited and not run: the cell ${names.join(', ')}. ` +
    'The source of its last run is graded; run the cell to have your edits checked.'
  );
}
