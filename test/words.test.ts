// The language of comments, messages, test names and pages (CONTRIBUTING.md, "Language"): the patterns that a machine can count.
import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { join, posix } from 'node:path';
import { describe, it } from 'node:test';
import ts from 'typescript';
import { syntaxOf, textOf } from './support/sources.ts';

const root = join(import.meta.dirname, '..');

/** Phrases that are replaced wherever they stand in a comment, a string or a page. */
const PHRASES: readonly [instead: string, pattern: RegExp][] = [
  [
    'is not a, is not valid',
    /(?<!\bthere )(?<!\bThere )\b(is|are|was|were) no (?!longer\b|more\b|less\b|other\b|one\b|room\b)[A-Za-z]+/g
  ],
  ['again, newly', /\banew\b/gi],
  ['current, valid, applied', /\bin force\b/gi],
  ['on its own, alone', /\bby (itself|themselves)\b/gi],
  ['own', /\bof (its|their) own\b/gi],
  ['any', /\bwhatever (it|they) (is|are|was|were)\b/gi],
  ['still, no longer', /\bany ?more\b/gi],
  ['a listener, a client, an app', /\bsomebody\b/gi],
  ['no listener, no client', /\bnobody\b/gi],
  ['counters, metrics', /(?<![-/_.])\bfigures?\b(?! (skating|\[))/gi],
  ['authorize, check', /\bjudg(e|es|ed|ing|ment)\b/gi],
  ['MAX_', /\b(MOST|LONGEST|GREATEST)_[A-Z]/g],
  ['is reported, is notified', /\b(is|are|was|were|be|been) told\b/gi],
  ['disconnects, is sent again', /\bgoes again\b/gi],
  ['causes, caused', /\b(has|have|had) led to\b/gi],
  ['dependencies of X on Y', /\bWhat (an? |the )?[a-z]+ (uses|takes|needs|reads|wants|keeps|knows|asks) of\b/g],
  ['records of', /\bWhat is kept\b/gi],
  ['those of, the', /\bthe ones of\b/gi],
  ['a string', /\b(is|be|as) a text\b/gi]
];

/** Two patterns of which one matches every text that contains a phrase. */
const ANY_PHRASE = ['i', ''].map((flag) => {
  const patterns = PHRASES.filter(([, { ignoreCase }]) => ignoreCase === (flag === 'i'));
  return new RegExp(patterns.map(([, { source }]) => `(?:${source})`).join('|'), flag);
});

/** Words that a comment does not begin with: a noun or a verb does. */
const OPENING = /^(What|Who|Whose|Whom|Whether|Where|How|It|They|Them|Those|These|Its|Their) /;

/** Words that a text of the console does not begin with, since it stands alone in the page. */
const TEXT_OPENING = /^(Who|Whose|Whom|Whether|It|They|Them|Those|These|Its|Their) /;

/** The texts of the console. */
const PAGE_TEXTS = 'adapters/dashboard/page/texts.ts';

/** Words that the name of a test does not begin with: it is read alone in a list of failures. */
const NAME_OPENING =
  /^(of|for|in|with|without|to|at|on|by|from|into|after|before|and|or|but|is|are|was|were|has|have|had|be|been|do|does(?! not\b)|did|not|no|it|its|they|their|them|those|these|that|this|what|who|whose|which|where|how|so|also|as|than|there|then|only)\b/i;

/** Headings of pages that have a usual name. */
const HEADING = /^#+ (Begin|Bounds|Circles|Measure|What is not there)\b/gm;

/** Findings that are left, by folder. A number may only shrink; a folder without findings leaves the list. */
const LEFT: Readonly<Record<string, number>> = {};

interface Finding {
  readonly file: string;
  readonly line: number;
  readonly text: string;
  readonly instead: string;
}

/** Texts in which a reader sees phrases that the documented interfaces or other products use. */
const QUOTED = /^(test\/words\.test\.ts|CHANGELOG\.md|LICENSE|bench\/RESULTS\.md|CONFORMANCE\.md)$/;

const files = ['lib', 'adapters', 'bench', 'examples', 'test', '.']
  .flatMap((tree) =>
    readdirSync(join(root, tree), { recursive: tree !== '.', encoding: 'utf8' })
      .filter(
        (name) =>
          /\.(ts|tsx|css|mts|mjs|md)$/.test(name) && !name.includes('node_modules') && !name.includes('fixtures')
      )
      .map((name) => posix.join(tree, name.replaceAll('\\', '/')))
  )
  .filter((file) => !QUOTED.test(file) && !/\/client\/(earlier|later|operations)\.ts$/.test(file));

/** The findings in one piece of text that stands at a position of a file. */
function inText(file: string, lineAt: number, text: string): Finding[] {
  return PHRASES.flatMap(([instead, pattern]) =>
    [...text.matchAll(pattern)].map((match) => {
      const line = lineAt + text.slice(0, match.index).split('\n').length - 1;
      return {
        file,
        line,
        text: text.slice(Math.max(0, match.index - 30), match.index + 50).replaceAll(/\s+/g, ' '),
        instead
      };
    })
  );
}

/** A comment without its delimiters. */
function bare(comment: string): string {
  return comment
    .replace(/^\/\*\*?|\*\/$|^\/\//g, '')
    .replaceAll(/^\s*(\*|\/\/) ?/gm, '')
    .trim();
}

/** A part of a text. */
interface Range {
  readonly start: number;
  readonly end: number;
}

/** Comments of a source: consecutive line comments are one. `//` in a literal does not begin a comment. */
function commentsOf(text: string, literals: readonly Range[]): { start: number; text: string }[] {
  const merged: { start: number; end: number; text: string }[] = [];
  const opening = /\/[/*]/g;
  let at = 0;
  for (let match = opening.exec(text); match !== null; match = opening.exec(text)) {
    const start = match.index;
    while (at < literals.length && literals[at].end <= start) at++;
    if (at < literals.length && literals[at].start <= start) {
      opening.lastIndex = literals[at].end;
      continue;
    }
    const end = match[0] === '//' ? text.indexOf('\n', start) : text.indexOf('*/', start + 2) + 2;
    const comment = text.slice(start, end);
    const last = merged.at(-1);
    const isNext = last !== undefined && /^\n[ \t]*$/.test(text.slice(last.end, start));
    if (isNext && last.text.startsWith('//') && comment.startsWith('//')) {
      last.text += `\n${comment}`;
      last.end = end;
    } else merged.push({ start, end, text: comment });
    opening.lastIndex = end;
  }
  return merged;
}

/** The findings in the comment that begins on a line. */
function inComment(file: string, line: number, comment: string): Finding[] {
  const text = bare(comment);
  const isAllowed = !OPENING.test(text) || /^(it|Those|These) (is|are) not /.test(text);
  const prose = comment.replaceAll(/`[^`\n]*`/g, (code) => ' '.repeat(code.length));
  const phrases = inText(file, line, prose);
  return isAllowed
    ? phrases
    : [...phrases, { file, line, text: text.slice(0, 60), instead: 'begin with a noun or a verb' }];
}

/** The findings in the comments of a style sheet. */
function inStyles(file: string, text: string): Finding[] {
  return [...text.matchAll(/\/\*.*?\*\//gs)].flatMap((comment) =>
    inComment(file, text.slice(0, comment.index).split('\n').length, comment[0])
  );
}

function inPage(file: string, text: string): Finding[] {
  const headings = [...text.matchAll(HEADING)].map((match) => ({
    file,
    line: text.slice(0, match.index).split('\n').length,
    text: match[0],
    instead: 'a usual heading: Getting started, Limits, Cycles, Benchmarks, Limitations'
  }));
  return [
    ...headings,
    ...inText(
      file,
      1,
      text.replaceAll(/`[^`\n]*`/g, (code) => ' '.repeat(code.length))
    )
  ];
}

function findings(file: string): Finding[] {
  const text = textOf(file);
  if (file.endsWith('.md')) return inPage(file, text);
  if (file.endsWith('.css')) return inStyles(file, text);
  const source = file.endsWith('.ts') ? syntaxOf(file) : ts.createSourceFile(file, text, ts.ScriptTarget.Latest);
  const lineOf = (position: number) => source.getLineAndCharacterOfPosition(position).line + 1;
  const found: Finding[] = [];
  const hasPhrase = ANY_PHRASE.some((pattern) => pattern.test(text));
  const literals: Range[] = [];
  const visit = (node: ts.Node): void => {
    const isText = ts.isStringLiteral(node) || ts.isTemplateLiteralToken(node);
    if (isText || ts.isJsxText(node) || ts.isRegularExpressionLiteral(node)) {
      const start = node.getStart(source);
      literals.push({ start, end: node.end });
      if (isText && hasPhrase && node.text.includes(' ')) found.push(...inText(file, lineOf(start), node.text));
      if (isText && file === PAGE_TEXTS && TEXT_OPENING.test(node.text))
        found.push({ file, line: lineOf(start), text: node.text, instead: 'a noun: the text stands alone' });
    } else if (
      ts.isCallExpression(node) &&
      ts.isIdentifier(node.expression) &&
      ['it', 'test'].includes(node.expression.text)
    ) {
      const [name] = node.arguments;
      const isName = name !== undefined && (ts.isStringLiteralLike(name) || ts.isTemplateExpression(name));
      const title = !isName ? '' : ts.isTemplateExpression(name) ? name.head.text : name.text;
      if (NAME_OPENING.test(title))
        found.push({ file, line: lineOf(node.getStart(source)), text: title, instead: 'a test name that reads alone' });
    }
    ts.forEachChild(node, visit);
  };
  visit(source);
  for (const comment of commentsOf(text, literals)) found.push(...inComment(file, lineOf(comment.start), comment.text));
  return found;
}

/** `lib/broker`, `adapters/management`, `test`: the folder of the list in which a file is counted. */
function folderOf(file: string): string {
  const [tree, folder, ...rest] = file.split('/');
  return rest.length > 0 && tree !== 'test' ? `${tree}/${folder}` : folder === undefined ? '.' : tree;
}

describe('the language of comments, messages, test names and pages', () => {
  it('contains none of the patterns that CONTRIBUTING.md replaces', () => {
    const found = files.flatMap(findings);
    const byFolder: Record<string, number> = {};
    for (const { file } of found) byFolder[folderOf(file)] = (byFolder[folderOf(file)] ?? 0) + 1;
    const only = process.env.WORDS; // WORDS=lib/sql lists the findings of one folder or file
    if (only !== undefined)
      for (const { file, line, text, instead } of found.filter(({ file }) => file.startsWith(only)))
        console.log(`${file}:${line}: ${text.trim()} (${instead})`);
    const grown = Object.entries(byFolder).filter(([folder, count]) => count > (LEFT[folder] ?? 0));
    assert.deepEqual(Object.fromEntries(grown), {}, 'WORDS=FOLDER npm test -- words lists them');
  });
});
