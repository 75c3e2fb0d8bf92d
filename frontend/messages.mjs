// Prints what is marked for translation in src/ as JSON lines: file, words, plural or null.
// tools/messages.py makes the catalogue of it.

import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import ts from 'typescript';

const SOURCES = join(import.meta.dirname, 'src');
/** How many of a call's first arguments are words. */
const MARKS = new Map([
  ['trans.__', 1],
  ['trans._n', 2],
  ['mark', 1],
  ['phrase', 1]
]);

/** The value of a string, or of strings that are joined by "+"; null of anything else. */
function wordsOf(node) {
  if (ts.isStringLiteralLike(node)) {
    return node.text;
  }
  if (
    ts.isBinaryExpression(node) &&
    node.operatorToken.kind === ts.SyntaxKind.PlusToken
  ) {
    const [left, right] = [wordsOf(node.left), wordsOf(node.right)];
    return left === null || right === null ? null : left + right;
  }
  return null;
}

function collect(file, marked) {
  const text = readFileSync(join(SOURCES, file), 'utf8');
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.ES2022, true);
  const visit = node => {
    if (ts.isCallExpression(node)) {
      const count = MARKS.get(node.expression.getText(source)) ?? 0;
      const words = node.arguments.slice(0, count).map(wordsOf);
      // words that come from a table are marked where the table is
      if (count > 0 && words.every(part => part !== null)) {
        marked.push({ file, words: words[0], plural: words[1] ?? null });
      }
    }
    ts.forEachChild(node, visit);
  };
  visit(source);
}

const marked = [];
readdirSync(SOURCES, { recursive: true })
  .map(file => file.replaceAll('\\', '/'))
  .filter(file => file.endsWith('.ts') && file !== 'translation.ts')
  .sort()
  .forEach(file => collect(file, marked));
process.stdout.write(marked.map(row => `${JSON.stringify(row)}\n`).join(''));
