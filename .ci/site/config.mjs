// The configuration of VitePress. `.ci/docs.mjs` copies it beside the pages that it has made, with their titles in `site.json`.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { defineConfig } from 'vitepress';

const { version, repositoryUrl, shelves } = JSON.parse(readFileSync(join(import.meta.dirname, 'site.json'), 'utf8'));

export default defineConfig({
  title: 'embermq',
  description: 'The MQTT broker that runs inside a Node app',
  cleanUrls: false,
  lastUpdated: false,
  srcExclude: ['public/**'], // the pages as Markdown, for llms.txt
  ignoreDeadLinks: [/^\/api\//, /^\/openapi\//], // written after the pages
  markdown: {
    html: false, // <topic> in a sentence is text
    theme: { light: 'github-light-high-contrast', dark: 'github-dark-high-contrast' },
    anchor: {
      slugify: (heading) =>
        heading
          .toLowerCase()
          .replace(/[^\p{L}\p{N}\- _]/gu, '')
          .replaceAll(' ', '-')
    }
  },
  themeConfig: {
    outline: [2, 3],
    nav: [
      ...shelves.map(({ name, title, groups }) => ({
        text: title,
        link: groups[0].items[0].link,
        activeMatch: `/${name}/`
      })),
      { text: 'API', link: '/api/index.html', target: '_self' },
      { text: 'OpenAPI', link: '/openapi/index.html', target: '_self' },
      { text: version, link: '/understand/changes' }
    ],
    sidebar: Object.fromEntries(
      shelves.map(({ name, groups }) => [`/${name}/`, groups.map(({ title, items }) => ({ text: title, items }))])
    ),
    socialLinks: [{ icon: 'github', link: repositoryUrl }],
    search: {
      provider: 'local',
      options: {
        miniSearch: {
          // Words of a question that say nothing about its subject are left out. The function is sent to the browser as text.
          options: {
            processTerm: (term) =>
              /^(an?|and|are|can|did|do|does|how|i|in|is|it|my|of|on|the|to|was|what|with)$/i.test(term)
                ? null
                : term.toLowerCase()
          },
          searchOptions: { boost: { title: 4, titles: 2, text: 1 }, fuzzy: 0.15, prefix: true, combineWith: 'OR' }
        }
      }
    }
  }
});
