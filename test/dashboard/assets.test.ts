import assert from 'node:assert/strict';
import { get } from 'node:http';
import { describe, it } from 'node:test';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { startConsole } from '../support/dashboard.ts';

/** Get a file with its bytes as they are sent. */
function bytesOf(port: number, path: string, headers: Record<string, string>, method = 'GET') {
  return new Promise<{ status: number; headers: NodeJS.Dict<string | string[]>; bytes: Buffer }>((resolve, reject) => {
    get({ port, path, headers, method }, async (response) => {
      const chunks: Buffer[] = [];
      for await (const chunk of response) chunks.push(chunk);
      resolve({ status: response.statusCode as number, headers: response.headers, bytes: Buffer.concat(chunks) });
    }).on('error', reject);
  });
}

async function withScript(use: (port: number, script: string) => Promise<void>) {
  await using server = await startConsole({ prefix: '/console' });
  const { text } = await server.call('GET', '/console/', undefined, {});
  const [, script] = /<script type="module" src="(assets\/[^"]+)">/.exec(text) ?? [];
  assert.ok(script, 'the shell names the script to begin with');
  await use(server.port, `/console/${script}`);
}

describe('The files of the page', () => {
  it('sends files as the client accepts them: with brotli, with gzip, or as they are', async () => {
    await withScript(async (port, script) => {
      const plain = await bytesOf(port, script, {});
      assert.equal(plain.headers['content-encoding'], undefined);
      assert.ok(plain.bytes.length > 1_000);
      const cases: [accept: string, coding: string | undefined][] = [
        ['gzip, deflate, br, zstd', 'br'],
        ['gzip, deflate', 'gzip'],
        ['br;q=0, gzip;q=0.5', 'gzip'],
        ['GZIP', 'gzip'],
        ['*', 'br'],
        ['br;q=0.0, *', 'gzip'],
        ['identity', undefined],
        ['gzip;q=0', undefined],
        ['', undefined]
      ];
      for (const [accept, coding] of cases) {
        const answer = await bytesOf(port, script, { 'accept-encoding': accept });
        assert.equal(answer.headers['content-encoding'], coding, accept);
        assert.equal(answer.headers.vary, 'accept-encoding');
        assert.equal(Number(answer.headers['content-length']), answer.bytes.length);
        const read = coding === 'br' ? brotliDecompressSync : coding === 'gzip' ? gunzipSync : (bytes: Buffer) => bytes;
        assert.deepEqual(read(answer.bytes), plain.bytes, accept);
      }
    });
  });

  it('lets browsers keep files, which never change under their name', async () => {
    await withScript(async (port, script) => {
      const { headers } = await bytesOf(port, script, {});
      assert.equal(headers['cache-control'], 'public, max-age=31536000, immutable');
      assert.equal(headers['content-type'], 'text/javascript; charset=utf-8');
      assert.equal(headers['x-content-type-options'], 'nosniff');
      const head = await bytesOf(port, script, {}, 'HEAD');
      assert.deepEqual([head.status, head.bytes.length], [200, 0]);
    });
  });

  it('answers other names, and paths out of the folder, with 404', async () => {
    await withScript(async (port) => {
      for (const path of [
        '/console/assets/../index.html',
        '/console/assets/..%2f..%2fpackage.json',
        '/console/assets/constructor',
        '/console/assets/',
        '/console/assets/main-00000000.js'
      ])
        assert.equal((await bytesOf(port, path, { accept: 'text/html' })).status, 404, path);
    });
  });
});
