// Makes the pages of the site from the pages beside the code: cuts out the sections that have a page of their own (`shelves.mjs`), and lets each link
// point to its place on the site, or to the repository.
import { existsSync, readFileSync, statSync } from 'node:fs';
import { join, posix } from 'node:path';
import { sitePages } from './shelves.mjs';

const root = join(import.meta.dirname, '../..');
const { repository } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
const repositoryUrl = repository.url.replace(/^git\+/, '').replace(/\.git$/, '');

/** Parts of a page: a block of code, code in a line, a comment, or a link with its mark, label and target. */
const PARTS = /^```[\s\S]*?^```$|`[^`\n]*`|^<!--[\s\S]*?-->\n|(!?)\[((?:`[^`\n]*`|[^\]`])*)\]\(([^)\s]+)\)/gm;

/** Returns the anchor of a heading, as it is made on GitHub and npm. */
export function anchorOf(heading) {
  return heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\- _]/gu, '')
    .replaceAll(' ', '-');
}

/** Returns the lines that are headings: level, text, and the index of the line. */
function headingsOf(lines) {
  let inCode = false;
  return lines.flatMap((line, at) => {
    if (line.startsWith('```')) inCode = !inCode;
    const [, marks, text] = (!inCode && /^(#{1,6}) (.*)$/.exec(line)) || [];
    return text === undefined ? [] : [{ level: marks.length, text, at }];
  });
}

/** Returns where a section of a file begins and ends. */
function sectionOf(lines, heading, file) {
  const headings = headingsOf(lines);
  const found = headings.findIndex(({ text }) => text === heading);
  if (found === -1) throw new Error(`${file} has no heading "${heading}": correct .ci/site/shelves.mjs`);
  const { level, at } = headings[found];
  const end = headings.slice(found + 1).find((next) => next.level <= level)?.at ?? lines.length;
  return { level, at, end };
}

/** Returns the title and the first sentence of a page. */
export function summaryOf(text) {
  const title = /^# (.*)$/m.exec(text)?.[1] ?? '';
  const paragraph = text
    .replace(/^```.*?^```$/gms, '')
    .split(/\n{2,}/)
    .find((part) => /^[A-Z`*[]/.test(part) && !part.startsWith('!['));
  const plain = (paragraph ?? '')
    .replaceAll('\n', ' ')
    .replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replaceAll('**', '');
  return { title, summary: /^.*?[.:](?= |$)/.exec(plain)?.[0].replace(/:$/, '.') ?? plain };
}

/**
 * Returns the pages of the site, `{ path, title, text }`, and the files that they show, such as pictures.
 *
 * Throws if a heading does not exist that `shelves.mjs` or a link of a page names.
 */
export function makePages() {
  const pages = sitePages();
  const parts = new Map(); // by file: its whole page, and its sections
  for (const { path, from } of pages) {
    const [file, heading] = from.split(/#(.*)/s);
    const entry = parts.get(file) ?? { sections: [] };
    if (heading === undefined) entry.path = path;
    else entry.sections.push({ heading, path });
    parts.set(file, entry);
  }
  const programs = new Map(); // programs of the examples that a page links to
  const assets = new Map();
  const places = placesOf(parts);
  const broken = [];
  const made = pages.map(({ path, from, title }) => {
    const [file, heading] = from.split(/#(.*)/s);
    const lines = readFileSync(join(root, file), 'utf8').split('\n');
    const text =
      heading === undefined ? withoutSections(lines, parts.get(file), file) : sectionText(lines, heading, file);
    const context = { path, file, places, programs, assets, broken };
    return { path, title, file, text: withLinks(text, context) };
  });
  if (broken.length > 0) throw new Error(`these links lead to no heading:\n${broken.join('\n')}`);
  return { pages: [...made, ...programs.values()], assets };
}

/** The text of the section of a page, with headings from the first level. */
function sectionText(lines, heading, file) {
  const { level, at, end } = sectionOf(lines, heading, file);
  const taken = lines.slice(at, end);
  for (const { at: line } of headingsOf(taken)) taken[line] = taken[line].slice(level - 1);
  return taken.join('\n');
}

/** The text of a file without the sections that have a page, each of which leaves its heading and a link. */
function withoutSections(lines, { sections }, file) {
  const cuts = sections.map(({ heading, path }) => ({ ...sectionOf(lines, heading, file), heading, path }));
  for (const { at, end, path, heading } of cuts.sort((a, b) => b.at - a.at)) {
    const moved = `[${heading.replaceAll('`', '')}](site:${path}) ${/s$/.test(heading) ? 'have' : 'has'} a page.`;
    lines.splice(at + 1, end - at - 1, '', moved, '');
  }
  return lines.join('\n');
}

/** Returns the place on the site of each file and of each of its headings: `FILE` or `FILE#ANCHOR` to `PATH` or `PATH#ANCHOR`. */
function placesOf(parts) {
  const places = new Map();
  for (const [file, { path, sections }] of parts) {
    const lines = readFileSync(join(root, file), 'utf8').split('\n');
    const cuts = sections.map((section) => ({ ...section, ...sectionOf(lines, section.heading, file) }));
    if (path !== undefined) places.set(file, path);
    for (const { text, at } of headingsOf(lines)) {
      const inside = cuts.filter((cut) => at >= cut.at && at < cut.end).sort((a, b) => b.at - a.at)[0];
      const anchor = anchorOf(text);
      const key = `${file}#${anchor}`;
      if (places.has(key)) continue;
      if (inside !== undefined) places.set(key, inside.at === at ? inside.path : `${inside.path}#${anchor}`);
      else if (path !== undefined) places.set(key, `${path}#${anchor}`);
    }
  }
  return places;
}

/** Changes the links of a text, and leaves out its comments. */
function withLinks(text, context) {
  return text.replace(PARTS, (part, mark, label, target) => {
    if (target === undefined) return part.startsWith('<!--') ? '' : part;
    return mark === '!' ? `![${label}](${imageOf(target, context)})` : `[${label}](${addressOf(target, context)})`;
  });
}

/** The address of a picture, which is copied to the site. */
function imageOf(target, { file, assets }) {
  if (/^[a-z]+:/.test(target)) return target;
  const source = posix.join(posix.dirname(file), target);
  assets.set(`pictures/${source.replaceAll('/', '-')}`, join(root, source));
  return `/pictures/${source.replaceAll('/', '-')}`;
}

/** The address of what a link points to. */
function addressOf(target, { file, path, places, programs, broken }) {
  if (target.startsWith('site:')) return relativeTo(path, target.slice(5));
  if (/^[a-z]+:/.test(target)) return target;
  const [name, anchor] = target.split('#');
  let source = name === '' ? file : posix.join(posix.dirname(file), name).replace(/\/$/, '');
  const isFolder = existsSync(join(root, source)) && statSync(join(root, source)).isDirectory();
  if (isFolder && places.has(`${source}/README.md`)) source += '/README.md';
  if (anchor !== undefined && places.has(source) && !places.has(`${source}#${anchor}`))
    broken.push(`${file}: ${target}`);
  const place = places.get(anchor === undefined ? source : `${source}#${anchor}`) ?? places.get(source);
  if (place !== undefined) return relativeTo(path, place);
  if (/^examples\/.*\.ts$/.test(source)) return relativeTo(path, programPage(source, programs));
  return `${repositoryUrl}/${isFolder ? 'tree' : 'blob'}/main/${source}${anchor === undefined ? '' : `#${anchor}`}`;
}

/** Adds the page that shows a program of the examples, and returns its path. */
function programPage(source, programs) {
  const name = source.replace(/^examples\//, '').replace(/\.ts$/, '');
  const path = `learn/program/${name.replaceAll('/', '-')}`;
  const code = readFileSync(join(root, source), 'utf8').trimEnd();
  const text = `# ${name}.ts\n\nOne of the examples of the package: \`${source}\`.\n\n\`\`\`ts\n${code}\n\`\`\`\n`;
  programs.set(source, { path, title: `${name}.ts`, file: source, text, isProgram: true });
  return path;
}

/** A path as seen from a page. */
function relativeTo(from, to) {
  const [path, anchor] = to.split('#');
  const link = posix.relative(posix.dirname(from), path);
  return `${link.startsWith('.') ? link : `./${link}`}${anchor === undefined ? '' : `#${anchor}`}`;
}
