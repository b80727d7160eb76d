// The language of comments, messages, test names and pages (CONTRIBUTING.md, "Language"): the patterns that a machine can count.
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join, posix } from 'node:path';
import { describe, it } from 'node:test';
import ts from 'typescript';

const root = join(import.meta.dirname, '..');

/** Phrases that are replaced wherever they stand in a comment, a string or a page. */
const PHRASES: readonly [instead: string, pattern: RegExp][] = [
  [
    'is not a, is not valid',
    /(?<!\bthere )(?<!\bThere )\b(is|are|was|were) no (?!longer\b|more\b|less\b|other\b|one\b|room\b)[a-z]+/g
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

/** Words that a comment does not begin with: a noun or a verb does. */
const OPENING = /^(What|Who|Whose|Whom|Whether|Where|How|It|They|Them|Those|These|Its|Their) /;

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
      .filter((name) => /\.(ts|mts|mjs|md)$/.test(name) && !name.includes('node_modules') && !name.includes('fixtures'))
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

/** Comments of a source: consecutive line comments are one. */
function commentsOf(text: string, source: ts.SourceFile): { pos: number; text: string }[] {
  const found = new Map<number, { pos: number; end: number; text: string }>();
  const visit = (node: ts.Node): void => {
    for (const range of ts.getLeadingCommentRanges(text, node.getFullStart()) ?? [])
      found.set(range.pos, { pos: range.pos, end: range.end, text: text.slice(range.pos, range.end) });
    for (const range of ts.getTrailingCommentRanges(text, node.getEnd()) ?? [])
      found.set(range.pos, { pos: range.pos, end: range.end, text: text.slice(range.pos, range.end) });
    for (const child of node.getChildren(source)) visit(child);
  };
  visit(source);
  const sorted = [...found.values()].sort((a, b) => a.pos - b.pos);
  const merged: { pos: number; end: number; text: string }[] = [];
  for (const comment of sorted) {
    const last = merged.at(-1);
    const isNext = last !== undefined && /^\n[ \t]*$/.test(text.slice(last.end, comment.pos));
    if (isNext && last.text.startsWith('//') && comment.text.startsWith('//')) {
      last.text += `\n${comment.text}`;
      last.end = comment.end;
    } else merged.push({ ...comment });
  }
  return merged;
}

function findings(file: string): Finding[] {
  const text = readFileSync(join(root, file), 'utf8');
  if (file.endsWith('.md')) {
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
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true);
  const lineOf = (pos: number) => source.getLineAndCharacterOfPosition(pos).line + 1;
  const found: Finding[] = [];
  for (const comment of commentsOf(text, source)) {
    const prose = comment.text.replaceAll(/`[^`\n]*`/g, (code) => ' '.repeat(code.length));
    found.push(...inText(file, lineOf(comment.pos), prose));
    const opening = OPENING.exec(bare(comment.text));
    if (opening !== null && !/^(it|Those|These) (is|are) not /.test(bare(comment.text)))
      found.push({
        file,
        line: lineOf(comment.pos),
        text: bare(comment.text).slice(0, 60),
        instead: 'begin with a noun or a verb'
      });
  }
  const visit = (node: ts.Node): void => {
    const isText = ts.isStringLiteral(node) || ts.isNoSubstitutionTemplateLiteral(node) || ts.isTemplateHead(node);
    if ((isText || ts.isTemplateMiddle(node) || ts.isTemplateTail(node)) && / /.test(node.text))
      found.push(...inText(file, lineOf(node.getStart(source)), node.text));
    if (
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
