// Runs the programs whose paths are given, one after the other, and prints a JSON array with what each of them has printed. Programs of one page
// share a process and a working directory. The ports that they name are replaced by free ones, the same in all programs.
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { format } from 'node:util';

/** Ports in programs: after a colon, in a call or as a property. Other numbers with four or five digits are left alone. */
const PORT = /(?<=localhost:|127\.0\.0\.1:|port: |listen(?:Http)?\((?:\w+, )?)\d{4,5}\b/g;

const files = process.argv.slice(2);
const outputs: string[] = [];
const free = new Map<string, string>();
let running = '';

for (const event of ['uncaughtException', 'unhandledRejection']) {
  process.on(event, (error) => {
    process.stderr.write(`${running}: ${event}: ${error instanceof Error ? error.stack : String(error)}\n`);
    process.exit(1);
  });
}
console.log = (...values) => {
  outputs[outputs.length - 1] += `${format(...values)}\n`;
};
process.chdir(mkdtempSync(join(tmpdir(), 'embermq-snippets-')));
for (const file of files) {
  running = file;
  const code = readFileSync(file, 'utf8');
  for (const [port] of code.matchAll(PORT)) if (!free.has(port)) free.set(port, await freePort());
  writeFileSync(
    file,
    code.replace(PORT, (port) => free.get(port) as string)
  );
  outputs.push('');
  await import(pathToFileURL(file).href);
}
process.stdout.write(JSON.stringify(outputs), () => process.exit(0));

/** Returns a port that is free now. The programs name their ports, so they cannot ask for any free one themselves. */
function freePort(): Promise<string> {
  return new Promise((resolve, reject) => {
    const server = createServer().once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address() as { port: number };
      server.close(() => resolve(String(port)));
    });
  });
}
