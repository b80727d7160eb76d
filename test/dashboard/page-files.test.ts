import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { brotliDecompressSync } from 'node:zlib';
import { files } from '../../adapters/dashboard/page-files.ts';

const MAX_START_BYTES = 70_000;
const MAX_ALL_BYTES = 600_000;

const bytesOf = (name: string) => Buffer.from(files[name].br, 'base64');
const textOf = (name: string) => brotliDecompressSync(bytesOf(name)).toString();

describe('The files of the console', () => {
  it('contains a shell without inline code and styles, and the files that it names', () => {
    const shell = textOf('index.html');
    assert.ok(shell.includes('<base href="/">'), 'the server inserts the address of the mount');
    assert.doesNotMatch(shell, /<style|\sstyle=|\son\w+=|javascript:|<script(?![^>]*\ssrc=)[^>]*>/i);
    const named = [...shell.matchAll(/(?:src|href)="(assets\/[^"]+)"/g)].map(([, name]) => name);
    assert.equal(named.length, 3);
    for (const name of named) assert.ok(files[name] !== undefined, name);
  });

  it('names no other server', () => {
    for (const name of Object.keys(files)) {
      const urls = [...textOf(name).matchAll(/\bhttps?:\/\/[\w.-]+/g)].map(([url]) => url);
      assert.deepEqual(
        urls.filter((url) => !url.startsWith('http://www.w3.org')), // names of XML
        [],
        name
      );
    }
  });

  it('gives each file a type, and a name that changes with their content', () => {
    for (const [name, { type, hash }] of Object.entries(files)) {
      assert.match(type, /^(text\/(html|css|javascript); charset=utf-8|image\/svg\+xml)$/);
      assert.match(hash, /^[0-9a-f]{16}$/);
      if (name !== 'index.html') assert.match(name, /^assets\/[\w.]+-[A-Z0-9]{8}\.\w+$/);
    }
  });

  it('keeps files small: those that the first page loads, and all together', () => {
    const start = new Set<string>(['index.html']);
    for (const name of start) {
      const text = textOf(name);
      for (const other of Object.keys(files)) {
        const file = other.slice(other.lastIndexOf('/') + 1);
        const isNamed = new RegExp(`(?:src="|href="assets/|from"\\./|import"\\./)${file.replaceAll('.', '\\.')}`);
        if (isNamed.test(text.replaceAll('src="assets/', 'src="'))) start.add(other);
      }
    }
    const sizeOf = (names: Iterable<string>) => [...names].reduce((sum, name) => sum + bytesOf(name).length, 0);
    assert.ok(start.size >= 4, [...start].join(' '));
    assert.ok(sizeOf(start) <= MAX_START_BYTES, `${sizeOf(start)}`);
    assert.ok(sizeOf(Object.keys(files)) <= MAX_ALL_BYTES, `${sizeOf(Object.keys(files))}`);
  });
});
