// Writes the site of the documentation to `.cache/site`: the pages beside the code (`.ci/site`), the API reference, the OpenAPI documents in a viewer,
// and `llms.txt`. Fails if a link leads nowhere, or if TypeDoc has warnings. `npm run docs`; `npm run docs -- --serve` also shows it on a local port.
//
// The site generator and the viewer are installed in `.cache/site-build`, so that a clone does not need them for anything else.
import { spawnSync } from 'node:child_process';
import { copyFileSync, cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { writeGenerated } from './generated.mjs';
import { makePages, summaryOf } from './site/pages.mjs';
import { SHELVES } from './site/shelves.mjs';

const root = join(import.meta.dirname, '..');
const site = join(root, '.cache/site');
const work = join(root, '.cache/site-build');
const source = join(work, 'source');
const { exports, version, repository, description } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
const openApi = Object.entries(exports).filter(([name]) => name.includes('openapi'));

await writeGenerated();
installTools();
writeSource();
run(process.execPath, [join(work, 'node_modules/vitepress/bin/vitepress.js'), 'build', source, '--outDir', site]);
writeApiReference();
writeOpenApiViewer();
process.stderr.write(`the site is in ${site}\n`);
if (process.argv.includes('--serve'))
  run(process.execPath, [join(work, 'node_modules/vitepress/bin/vitepress.js'), 'preview', source, '--outDir', site]);

function run(command, args, cwd = root) {
  const { status } = spawnSync(command, args, { cwd, stdio: 'inherit' });
  if (status !== 0) process.exit(status ?? 1);
}

function installTools() {
  mkdirSync(work, { recursive: true });
  const lock = 'package-lock.json';
  const wanted = readFileSync(join(root, '.ci/site', lock), 'utf8');
  if (existsSync(join(work, 'installed')) && readFileSync(join(work, 'installed'), 'utf8') === wanted) return;
  for (const name of ['package.json', lock]) copyFileSync(join(root, '.ci/site', name), join(work, name));
  const npm = process.env.npm_execpath; // a script of npm, set by `npm run`: without a shell, also on Windows
  const args = ['ci', '--ignore-scripts', '--no-audit', '--no-fund'];
  if (npm === undefined) run('npm', args, work);
  else run(process.execPath, [npm, ...args], work);
  writeFileSync(join(work, 'installed'), wanted);
}

/** Writes what VitePress builds the site from. */
function writeSource() {
  rmSync(source, { recursive: true, force: true });
  const { pages, assets } = makePages();
  const described = pages.map((page) => ({ ...page, ...summaryOf(page.text), name: page.title }));
  const titles = new Map(described.map(({ path, name, title }) => [path, plain(name ?? title)]));
  for (const { path, text, summary } of described) {
    const front = { description: summary, ...(path.startsWith('look-up/') && { aside: false }) };
    const head = `---\n${JSON.stringify(front, null, 2)}\n---\n\n`;
    write(join(source, `${path}.md`), `${head}::: v-pre\n\n${text}\n\n:::\n`); // {{ }} in a page is text, not an expression
    write(join(source, 'public', `${path}.md`), text);
  }
  for (const [path, from] of assets) {
    mkdirSync(dirname(join(source, 'public', path)), { recursive: true });
    copyFileSync(from, join(source, 'public', path));
  }
  const shelves = SHELVES.map(({ name, title, about, groups }) => ({
    name,
    title,
    about,
    groups: groups.map(({ title: group, pages: entries }) => ({
      title: group,
      items: entries.map(({ path }) => ({ text: titles.get(`${name}/${path}`), link: `/${name}/${path}` }))
    }))
  }));
  write(join(source, 'index.md'), homePage(shelves));
  write(join(source, 'public/llms.txt'), llmsText(shelves, described));
  write(join(source, '.vitepress/site.json'), JSON.stringify({ version, repositoryUrl: repositoryUrl(), shelves }));
  copyFileSync(join(root, '.ci/site/config.mjs'), join(source, '.vitepress/config.mjs'));
  cpSync(join(root, '.ci/site/theme'), join(source, '.vitepress/theme'), { recursive: true });
}

/** The first page: what embermq is, and the shelves. */
function homePage(shelves) {
  const [{ groups }] = shelves;
  const features = shelves.map(({ title, about, groups: [first] }) => ({
    title,
    details: about,
    link: first.items[0].link
  }));
  const front = {
    layout: 'home',
    hero: {
      name: 'embermq',
      text: 'The MQTT broker inside your Node app',
      tagline: description,
      image: {
        src: '/pictures/adapters-dashboard-pictures-overview.png',
        alt: 'The console: connections, rates, queues and alarms'
      },
      actions: [
        { theme: 'brand', text: 'Getting started', link: groups[0].items[0].link },
        { theme: 'alt', text: 'Something does not work', link: '/do/troubleshooting' }
      ]
    },
    features
  };
  return `---\n${JSON.stringify(front, null, 2)}\n---\n`;
}

/** The index of all pages for language models (llmstxt.org): each page is also there as Markdown. */
function llmsText(shelves, pages) {
  const summaries = new Map(pages.map(({ path, summary }) => [`/${path}`, summary]));
  const lists = shelves.map(({ title, groups }) => {
    const items = groups.flatMap((group) =>
      group.items.map((item) => ({ ...item, text: `${group.title}: ${item.text}` }))
    );
    const lines = items.map(({ text, link }) => `- [${text}](${link}.md): ${summaries.get(link)}`);
    return `## ${title}\n\n${lines.join('\n')}\n`;
  });
  return `# embermq ${version}\n\n> ${description}\n\n${lists.join('\n')}`;
}

function plain(title) {
  return title.replaceAll('`', '');
}

function repositoryUrl() {
  return repository.url.replace(/^git\+/, '').replace(/\.git$/, '');
}

/** Writes the reference of all entry points with TypeDoc. */
function writeApiReference() {
  const entries = Object.values(exports)
    .map((entry) => entry['embermq-source'])
    .filter((path) => path?.endsWith('.ts'));
  const typedoc = join(dirname(createRequire(import.meta.url).resolve('typedoc/package.json')), 'bin/typedoc');
  const options = ['--options', 'typedoc.json', '--plugin', './.ci/site/api-texts.mjs', '--treatWarningsAsErrors'];
  const outputs = ['--out', join(site, 'api'), '--json', join(work, 'api.json')]; // `.ci/site/check.mjs` reads the latter
  run(process.execPath, [typedoc, ...options, ...outputs, ...entries]);
}

function writeOpenApiViewer() {
  const viewer = join(work, 'node_modules/swagger-ui-dist');
  const documents = openApi.map(([name, { 'embermq-source': file }]) => ({
    name: name.replace(/^\.\//, '').replace(/\.json$/, ''),
    spec: JSON.parse(readFileSync(join(root, file), 'utf8'))
  }));
  for (const name of ['swagger-ui-bundle.js', 'swagger-ui.css'])
    cpSync(join(viewer, name), join(site, 'openapi', name));
  copyFileSync(join(root, '.ci/site/openapi.html'), join(site, 'openapi/index.html'));
  write(join(site, 'openapi/documents.js'), `const DOCUMENTS = ${JSON.stringify(documents)};\n`);
}

function write(path, content) {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, content);
}
